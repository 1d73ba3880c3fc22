//! Module `re`: regular expressions with linear running time, so that no pattern can hang a script. Positions count
//! characters, as in the language.

use std::cell::RefCell;

use regex::{Captures, Regex, RegexBuilder};
use starlark::collections::SmallMap;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::list::AllocList;
use starlark::values::none::NoneOr;
use starlark::values::{Heap, Value};

use super::{Fields, bounded, error, fields};

/// Maximum size of a pattern, in bytes.
const MAX_PATTERN: usize = 4 << 10;

/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Maximum matches of one call.
const MAX_MATCHES: usize = 100_000;

/// Maximum compiled patterns that are cached: scripts often use one pattern in a loop.
const MAX_KEPT: usize = 32;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Matches at the start of a text: `match`, `groups`, `start` and `end`.
    fn r#match<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<NoneOr<Fields<'v>>> {
        let anchored = format!("\\A(?:{pattern})");
        // Compiled alone first, so that a stray parenthesis cannot undo the anchor.
        compiled("re.match", pattern)?;
        let regex = compiled("re.match", &anchored)?;
        Ok(first(&regex, text, heap))
    }

    /// Finds the first match in a text, in the same form.
    fn search<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<NoneOr<Fields<'v>>> {
        Ok(first(&compiled("re.search", pattern)?, text, heap))
    }

    /// Finds all matches: their texts, or their groups if the pattern has groups.
    fn findall<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
        all("re.findall", pattern, text, heap)
    }

    /// Alias of `findall`.
    fn find_all<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
        all("re.find_all", pattern, text, heap)
    }

    /// Replaces all matches, or the first `count`; `$1` and `${name}` insert groups.
    fn replace(
        pattern: &str,
        replacement: &str,
        text: &str,
        #[starlark(default = 0)] count: u32,
    ) -> starlark::Result<String> {
        replaced("re.replace", pattern, replacement, text, count)
    }

    /// Alias of `replace`.
    fn sub(
        pattern: &str,
        replacement: &str,
        text: &str,
        #[starlark(default = 0)] count: u32,
    ) -> starlark::Result<String> {
        replaced("re.sub", pattern, replacement, text, count)
    }

    /// Splits a text at the matches.
    fn split(pattern: &str, text: &str) -> starlark::Result<Vec<String>> {
        let regex = compiled("re.split", pattern)?;
        let parts: Vec<_> = regex.split(text).take(MAX_MATCHES + 1).map(str::to_owned).collect();
        few("re.split", parts.len())?;
        Ok(parts)
    }
}

fn compiled(function: &str, pattern: &str) -> starlark::Result<Regex> {
    thread_local! {
        static KEPT: RefCell<SmallMap<String, Regex>> = const { RefCell::new(SmallMap::new()) };
    }
    if let Some(regex) = KEPT.with_borrow(|kept| kept.get(pattern).cloned()) {
        return Ok(regex);
    }
    if pattern.len() > MAX_PATTERN {
        let what = format!("the pattern is {} bytes, over the limit of {MAX_PATTERN}", pattern.len());
        return Err(error(function, what));
    }
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).build();
    let regex = built.map_err(|what| match what {
        regex::Error::CompiledTooBig(_) => {
            error(function, "the pattern takes more memory than it may; make it shorter")
        }
        what => error(function, reason(&what.to_string())),
    })?;
    KEPT.with_borrow_mut(|kept| {
        if kept.len() == MAX_KEPT {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), regex.clone());
    });
    Ok(regex)
}

/// Last line of the library's message, without the drawing of the pattern.
fn reason(message: &str) -> String {
    let last = message.lines().last().unwrap_or(message);
    format!("the pattern is not a regular expression: {}", last.trim_start_matches("error: "))
}

fn first<'v>(regex: &Regex, text: &str, heap: Heap<'v>) -> NoneOr<Fields<'v>> {
    let Some(found) = regex.captures(text) else { return NoneOr::None };
    let (start, end) = found.get(0).map_or((0, 0), |whole| (whole.start(), whole.end()));
    let place = |at: usize| heap.alloc(text[..at].chars().count());
    NoneOr::Other(fields([
        ("match", heap.alloc(&text[start..end])),
        ("groups", heap.alloc(AllocList(groups(&found, heap)))),
        ("start", place(start)),
        ("end", place(end)),
    ]))
}

fn groups<'v>(found: &Captures, heap: Heap<'v>) -> Vec<Value<'v>> {
    let text = |group: Option<regex::Match>| group.map_or(Value::new_none(), |group| heap.alloc(group.as_str()));
    found.iter().skip(1).map(text).collect()
}

fn all<'v>(function: &str, pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
    let regex = compiled(function, pattern)?;
    let mut matches = Vec::new();
    for found in regex.captures_iter(text) {
        few(function, matches.len())?;
        let mut groups = groups(&found, heap);
        matches.push(match groups.len() {
            0 => heap.alloc(&found[0]),
            1 => groups.remove(0),
            _ => heap.alloc(AllocList(groups)),
        });
    }
    Ok(matches)
}

fn replaced(function: &str, pattern: &str, replacement: &str, text: &str, count: u32) -> starlark::Result<String> {
    let regex = compiled(function, pattern)?;
    let most = if count == 0 { usize::MAX } else { count as usize };
    let mut result = String::new();
    let mut rest = 0;
    for found in regex.captures_iter(text).take(most) {
        let Some(whole) = found.get(0) else { continue };
        result.push_str(&text[rest..whole.start()]);
        found.expand(replacement, &mut result);
        rest = whole.end();
        bounded(function, &result)?;
    }
    result.push_str(&text[rest..]);
    bounded(function, &result)?;
    Ok(result)
}

fn few(function: &str, count: usize) -> starlark::Result<()> {
    if count > MAX_MATCHES {
        return Err(error(function, format!("more than {MAX_MATCHES} matches")));
    }
    Ok(())
}
