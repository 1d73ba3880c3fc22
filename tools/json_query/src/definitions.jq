# Filters of jq that the library lacks, or defines otherwise.
def IN(s): any(s == .; .);
def IN(source; s): any(source == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);

# From the last path to the first, so that none changes the place of another.
def delpath($path): delpaths([$path]);
def delpaths($paths): reduce ($paths | unique | reverse | .[]) as $path (.; delpath($path));
def del(f): delpaths([path(f)]);
def from_entries:
  def first_of(keys): . as $entry | [keys | select(. as $key | $entry | has($key)) | $entry[.]] | .[0];
  reduce .[] as $entry ({}; . + (
    $entry | (first_of("key", "k", "name", "Name", "Key", "K") | if isstring then . else tojson end) as $key
    | {($key): first_of("value", "v", "Value", "V")}
  ));
def toarray: if isarray then . else [.] end;
def trimstr($text): ltrimstr($text) | rtrimstr($text);
def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);

def join($separator):
  reduce .[] as $part (null;
    (if . == null then "" else . + $separator end)
    + ($part | if . == null then "" elif isboolean or isnumber then tojson else . end)
  ) // "";

def cell_of_row($format):
  if . == null then "" elif isboolean or isnumber then tojson
  else error("\(type) is no cell of a row of \($format)") end;
def row($format; cell; $separator):
  if isarray then map(if isstring then cell else cell_of_row($format) end) | join($separator)
  else error("\(type) is no row of \($format): only an array is") end;
def replaced($old; $new): split($old) | join($new);
def @csv: row("csv"; "\"" + replaced("\""; "\"\"") + "\""; ",");
def @tsv:
  row("tsv"; replaced("\\"; "\\\\") | replaced("\t"; "\\t") | replaced("\n"; "\\n") | replaced("\r"; "\\r"); "\t");
