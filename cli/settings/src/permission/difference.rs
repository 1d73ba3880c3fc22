//! Lines that a call would change, as its arguments have them: for the question about the call. A tool can do something else,
//! so the arguments are shown too.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use serde_json::{Map, Value};
use toolcrib::policy::ApprovalRequest;
use toolcrib_base::render::{counted, legible, one_line, unified};

/// Maximum length of the arguments that are read, and of a compared file, in bytes.
pub(super) const MAX_COMPARED: usize = 1 << 20;
/// Time after which no further edit is compared.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Maximum number of edits that are shown.
const MAX_EDITS: usize = 20;
/// Names of arguments that hold a path.
pub(super) const PATHS: [&str; 4] = ["path", "file_path", "filename", "file"];
/// Names of arguments that hold a new content for a whole file.
const CONTENTS: [&str; 5] = ["content", "contents", "file_text", "new_content", "text"];
/// Words in the name of a tool that writes whole files, and arguments of tools that write parts.
const WHOLE: [&str; 4] = ["write", "create", "save", "replace_file"];
const PARTS: [&str; 12] =
    ["start", "end", "offset", "line", "lines", "range", "at", "position", "append", "mode", "insert", "unit"];
/// Names of arguments that hold a patch.
const PATCHES: [&str; 3] = ["patch", "diff", "input"];
/// Begins of a patch.
const PATCH_STARTS: [&str; 4] = ["*** Begin Patch", "--- ", "diff --git ", "Index: "];
/// Argument names that change what a pattern matches.
const OTHER_MATCHES: [&str; 6] = ["regex", "regexp", "ignore_case", "ignoreCase", "count", "flags"];
/// Names of two arguments: a text, and its replacement.
const EDITS: [(&str, &str); 6] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
    ("search", "replace"),
    ("pattern", "replacement"),
];

/// Lines that a call would change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The lines, without control characters.
    pub(super) text: String,
    /// Argument names whose whole values the lines show.
    pub(super) arguments: Vec<String>,
}

impl Difference {
    fn new(text: &str, arguments: &[&str]) -> Self {
        Self { text: shown(text), arguments: arguments.iter().map(|name| (*name).to_owned()).collect() }
    }
}

/// Returns the lines that a call would change, if its arguments are a patch, a text with its replacement, or the new content of a
/// file in a granted folder.
pub(super) fn of(request: &ApprovalRequest<'_>) -> Option<Difference> {
    // A stage can show another file than the folder has, and only some tools replace whole files.
    let name = request.tool.name.to_ascii_lowercase();
    let replaces = WHOLE.iter().any(|word| name.contains(word)) && !name.contains("append");
    difference(request.arguments, if request.stage.is_none() { request.granted } else { &[] }, replaces)
}

fn difference(arguments: &str, granted: &[String], replaces: bool) -> Option<Difference> {
    if arguments.len() > MAX_COMPARED {
        return None;
    }
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let is_patch = |patch: &str| PATCH_STARTS.iter().any(|start| patch.trim_start().starts_with(start));
    let found = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, text(name)?)));
    if let Some(name) = PATCHES.into_iter().find(|name| text(name).is_some_and(is_patch)) {
        return Some(Difference::new(text(name)?, &[name]));
    }
    let (path_name, named) = found(&PATHS)?;
    let path = one_line(named);
    if let Some(edits) = arguments.get("edits").and_then(Value::as_array) {
        let until = Instant::now() + MAX_TIME;
        let shown_edits: Vec<String> = edits
            .iter()
            .take(MAX_EDITS)
            .map_while(|one| edit(one.as_object()?).filter(|_| Instant::now() < until))
            .collect();
        let left = edits.len() - shown_edits.len();
        let more = if left > 0 { format!("… {}", counted(left, "more edit")) } else { String::new() };
        return (!shown_edits.is_empty())
            .then(|| Difference::new(&format!("{path}\n{}{more}", shown_edits.concat()), &[]));
    }
    if let Some((old, new)) = EDITS.into_iter().find(|(old, new)| text(old).is_some() && text(new).is_some()) {
        return Some(match in_file(&arguments, (old, new), granted, named) {
            Some(lines) => Difference::new(&format!("{path}\n{lines}"), &[path_name, old, new]),
            None => Difference::new(&format!("{path}\n{}", edit(&arguments)?), &[]),
        });
    }
    let is_part = PARTS.iter().any(|name| arguments.contains_key(*name));
    let (content_name, content) = found(&CONTENTS).filter(|_| replaces && !is_part)?;
    let before = before(granted, named)?;
    let is_new = before.is_none();
    let lines = unified(before.as_deref().unwrap_or_default(), content);
    let lines = if lines.is_empty() { "the same content" } else { lines.as_str() };
    let text = format!("{path}{}\n{lines}", if is_new { " (new)" } else { "" });
    Some(Difference::new(&text, &[path_name, content_name]))
}

/// Compares a file with its text after an edit, which replaces all matches of a pattern or the only old text. Returns `None` if it is
/// not known which matches are meant.
fn in_file(arguments: &Map<String, Value>, (old, new): (&str, &str), granted: &[String], path: &str) -> Option<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let is_set = |name: &&str| arguments.get(*name).is_some_and(|value| !matches!(value, Value::Bool(false)));
    let (before, old_text, new_text) = (before(granted, path)??, text(old)?, text(new)?);
    // A tool that keeps line breaks changes the texts.
    if old_text.is_empty() || before.contains('\r') || OTHER_MATCHES.iter().any(&is_set) {
        return None;
    }
    let matches = before.matches(old_text).take(2).count();
    let takes_all = old == "pattern" || is_set(&"replace_all");
    (matches == 1 || (matches > 1 && takes_all)).then(|| unified(&before, &before.replace(old_text, new_text)))
}

/// Formats the two texts of an edit.
fn edit(arguments: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (before, after) = EDITS.iter().find_map(|(old, new)| Some((text(old)?, text(new)?)))?;
    Some(unified(before, after))
}

/// Reads the text of a file in the granted folders: `Some(None)` if none of them has it, `None` if it is not known which file is
/// meant, or if it is no text that can be compared.
fn before(granted: &[String], path: &str) -> Option<Option<String>> {
    let folder = granted_folder(granted, path)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let file = match folder.open_with(path.trim_start_matches('/'), &options) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
        file => file.ok()?,
    };
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_COMPARED as u64 {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_COMPARED as u64).read_to_string(&mut text).ok()?;
    Some(Some(text))
}

/// Opens the folder in which a tool finds a path; `None` if it is not known which one it is.
pub(super) fn granted_folder(granted: &[String], path: &str) -> Option<Dir> {
    let folders = granted.iter().filter(|granted| granted.starts_with("write:") || granted.starts_with("read:"));
    // With several folders, the tool's paths for them are not known here.
    let [folder] = folders.collect::<Vec<_>>()[..] else { return None };
    let folder = folder.strip_prefix("write:")?;
    // An absolute path can be one of the host, which the tool does not have.
    if Path::new(path).is_absolute() && Path::new(path).exists() {
        return None;
    }
    Dir::open_ambient_dir(folder, ambient_authority()).ok()
}

/// Formats lines from outside without control characters.
pub(super) fn shown(text: &str) -> String {
    text.trim_end().split('\n').map(legible).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_outside_of_the_folder_or_of_another_kind_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("work")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("work/a"), "a").unwrap();
        fs::write(at("work/large"), vec![b'a'; MAX_COMPARED + 1]).unwrap();
        fs::write(at("work/bytes"), [0xff]).unwrap();
        let granted = [format!("write:{}", at("work").display())];
        let text = |path: &str| before(&granted, path);
        assert_eq!(text("a"), Some(Some("a".to_owned())));
        assert_eq!(text("/a"), Some(Some("a".to_owned())));
        assert_eq!(text("new"), Some(None));
        for path in ["../secret", "large", "bytes", "."] {
            assert_eq!(text(path), None, "{path}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", at("work/link")).unwrap();
            assert_eq!(text("link"), None);
        }
        #[cfg(target_os = "linux")]
        {
            rustix::fs::mknodat(rustix::fs::CWD, at("work/fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            assert_eq!(text("fifo"), None);
        }
        assert_eq!(before(&[granted[0].clone(), granted[0].clone()], "a"), None);
        assert_eq!(before(&[], "a"), None);
    }

    #[test]
    fn the_arguments_decide_what_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "one\ntwo\n").unwrap();
        let granted = [format!("write:{}", folder.path().display())];
        let of = |arguments: &str| difference(arguments, &granted, true).map(|difference| difference.text);
        let content = r#"{"path":"a.md","content":"one\nthree\n"}"#;
        assert_eq!(of(content).as_deref(), Some("a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+three"));
        assert_eq!(difference(content, &granted, false), None, "a tool that writes no whole files");
        assert_eq!(difference(content, &[], true), None, "a stage can show another file");
        assert_eq!(of(r#"{"path":"a.md","content":"x","start":1}"#), None, "a part of a file");
        assert_eq!(of(r#"{"file":"b","text":"x\n"}"#).as_deref(), Some("b (new)\n@@ -0,0 +1 @@\n+x"));
        assert_eq!(of(r#"{"path":"a.md","content":"one\ntwo\n"}"#).as_deref(), Some("a.md\nthe same content"));
        assert_eq!(of(r#"{"patch":"*** Begin Patch\n+x\u001b[2J"}"#).as_deref(), Some("*** Begin Patch\n+x\\u{1b}[2J"));
        let edits = r#"{"path":"a.md","edits":[{"oldText":"a\n","newText":"b\n"},{"oldText":"c\n","newText":""}]}"#;
        assert_eq!(of(edits).as_deref(), Some("a.md\n@@ -1 +1 @@\n-a\n+b\n@@ -1 +0,0 @@\n-c"));
        let many =
            format!(r#"{{"path":"a","edits":[{}]}}"#, [r#"{"oldText":"a","newText":"b"}"#; MAX_EDITS + 3].join(","));
        assert!(of(&many).unwrap().ends_with("… 3 more edits"));
        let large = format!(r#"{{"path":"a.md","content":"{}"}}"#, "x".repeat(MAX_COMPARED));
        for other in [r#"{"path":"a.md"}"#, r#"{"content":"x"}"#, r#"{"patch":"no patch"}"#, "[]", "no JSON", &large] {
            assert_eq!(of(other), None, "{}", &other[..20.min(other.len())]);
        }
    }

    #[test]
    fn an_edit_of_a_known_file_is_shown_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "one\ntwo\nthree\ntwo\n").unwrap();
        fs::write(folder.path().join("crlf"), "one\r\n").unwrap();
        let granted = [format!("write:{}", folder.path().display())];
        let of = |arguments: &str| difference(arguments, &granted, false).unwrap();
        let one = of(r#"{"path":"a.md","old_string":"thr","new_string":"fr","b":1}"#);
        assert_eq!(one.text, "a.md\n@@ -1,4 +1,4 @@\n one\n two\n-three\n+free\n two");
        assert_eq!(one.arguments, ["path", "old_string", "new_string"]);
        let all = "a.md\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n-two\n+2";
        for arguments in [
            r#"{"path":"a.md","pattern":"two","replacement":"2","regex":false}"#,
            r#"{"path":"a.md","old_string":"two","new_string":"2","replace_all":true}"#,
        ] {
            assert_eq!(of(arguments).text, all, "{arguments}");
        }
        for arguments in [
            r#"{"path":"a.md","old_string":"two","new_string":"2"}"#,
            r#"{"path":"a.md","pattern":"none","replacement":"2"}"#,
            r#"{"path":"a.md","pattern":"","replacement":"2"}"#,
            r#"{"path":"a.md","pattern":"two","replacement":"2","regex":true}"#,
            r#"{"path":"a.md","pattern":"two","replacement":"2","ignore_case":true}"#,
            r#"{"path":"crlf","pattern":"one","replacement":"2"}"#,
            r#"{"path":"../a.md","pattern":"two","replacement":"2"}"#,
        ] {
            let other = of(arguments);
            assert!(other.arguments.is_empty() && !other.text.contains("three"), "{other:?}");
        }
        let staged = difference(r#"{"path":"a.md","old_string":"thr","new_string":"fr"}"#, &[], false).unwrap();
        assert!(staged.arguments.is_empty(), "a stage can show another file");
    }

    #[test]
    fn an_edit_is_shown_line_by_line_and_what_is_no_edit_is_not() {
        let of = |text: &str| edit(&serde_json::from_str(text).unwrap());
        let lines = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(of(r#"{"old_string":"a","new_string":"b"}"#).as_deref(), Some(lines));
        assert_eq!(of(r#"{"pattern":"a","replacement":"b"}"#).as_deref(), Some(lines));
        assert_eq!(of(r#"{"old_string":"a","new_text":"b"}"#), None);
        assert_eq!(shown("a\u{1b}[2J\nb\n\n").lines().count(), 2);
        assert!(!shown("a\u{1b}[2J").contains('\u{1b}'));
    }
}
