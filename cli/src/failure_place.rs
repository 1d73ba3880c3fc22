//! Place at which the code of a tool failed, from the standard error of its call: a position of the interpreter of scripts, the
//! innermost frame of a trace of JavaScript or Python, or a panic of Rust.

use serde_json::Value;

use crate::render::one_line;

/// Maximum lines of standard error that are searched, from its end.
const MAX_LINES: usize = 200;
/// Maximum length of a place, in bytes.
const MAX_LENGTH: usize = 200;
/// Extension of files with scripts.
const SCRIPT: &str = ".md";
/// Extensions of the files in a trace of JavaScript.
const JAVASCRIPT: [&str; 4] = [".js", ".mjs", ".cjs", ".ts"];
/// Words before the place of a panic.
const PANIC: &str = "panicked at ";
/// Beginning of a frame of Python.
const FRAME: &str = "File \"";
/// Words after the place in a script whose lines are not those of its file.
const OF_SCRIPT: &str = " of the script";

/// Returns the hint with the place of a failure; `message` is the error as the model sees it.
pub(crate) fn hint(log: &str, message: &str) -> Option<String> {
    // A trace of JavaScript is a quoted text in the panic of its engine.
    let log = log.replace("\\n", "\n");
    let all: Vec<&str> = log.lines().collect();
    let lines = &all[all.len().saturating_sub(MAX_LINES)..];
    let script = || lines.iter().rev().find_map(|line| of_script(line, message)).map(|place| ("script", place));
    let panic = || lines.iter().rev().find_map(|line| of_panic(line)).map(|place| ("tool", place));
    // The innermost frame comes first in JavaScript, and last in Python.
    let javascript = || lines.iter().find_map(|line| of_javascript(line)).map(|place| ("tool", place));
    let python = || lines.iter().rev().find_map(|line| of_python(line)).map(|place| ("tool", place));
    let (what, place) = script().or_else(javascript).or_else(python).or_else(panic)?;
    let rest = if what == "tool" { "; `--verbose` shows its standard error" } else { "" };
    (place.len() <= MAX_LENGTH).then(|| format!("the {what} failed at {}{rest}", one_line(&place)))
}

/// Reads `FILE.md:LINE:COLUMN: REASON`, as the interpreter writes it, if the message has the reason.
fn of_script(line: &str, message: &str) -> Option<String> {
    let (file, rest) = line.split_once(&format!("{SCRIPT}:"))?;
    let (line, rest) = rest.split_once(':')?;
    let (column, reason) = rest.split_once(':')?;
    let (column, scope) = column.strip_suffix(OF_SCRIPT).map_or((column, ""), |column| (column, OF_SCRIPT));
    let reason = reason.trim();
    // A model sees the message as JSON.
    let is_told = || message.contains(reason) || message.contains(Value::from(reason).to_string().trim_matches('"'));
    let is_reason = !reason.is_empty() && is_told();
    (is_reason && is_number(line) && is_number(column)).then(|| format!("{file}{SCRIPT}:{line}:{column}{scope}"))
}

fn of_panic(line: &str) -> Option<String> {
    let (_, place) = line.split_once(PANIC)?;
    let place = place.trim_end_matches(':');
    is_position(place).then(|| place.to_owned())
}

/// Reads a frame `at FUNCTION (FILE:LINE:COLUMN)` or `at FILE:LINE:COLUMN`.
fn of_javascript(line: &str) -> Option<String> {
    let frame = line.strip_prefix("at ").or_else(|| Some(line.rsplit_once(" at ")?.1))?;
    let place = frame.rsplit_once('(').map_or(Some(frame), |(_, inner)| inner.strip_suffix(')'))?;
    let is_code = JAVASCRIPT.iter().any(|ending| place.contains(&format!("{ending}:")));
    (is_code && is_position(place)).then(|| place.trim_start_matches('/').to_owned())
}

/// Reads a frame `File "FILE", line LINE, in FUNCTION`.
fn of_python(line: &str) -> Option<String> {
    let (file, rest) = line.trim().strip_prefix(FRAME)?.split_once("\", line ")?;
    let number = rest.split(',').next()?;
    is_number(number).then(|| format!("{file}:{number}"))
}

/// `true` for `FILE:LINE` and `FILE:LINE:COLUMN`.
fn is_position(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(file, number)| !file.is_empty() && is_number(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_each_language_is_found() {
        for (log, place) in [
            ("said\ncount.md:6:14: fail: no such thing\n", Some("the script failed at count.md:6:14")),
            (
                "count.md:2:3 of the script: fail: no such thing",
                Some("the script failed at count.md:2:3 of the script"),
            ),
            ("count.md:6:14: another reason", None),
            ("\nthread 'main' panicked at src/lib.rs:10:5:\nmine", Some("the tool failed at src/lib.rs:10:5")),
            (
                "Error: mine\n    at greet (app.js:4:9)\n    at <anonymous> (app.js:9:1)\n",
                Some("the tool failed at app.js:4:9"),
            ),
            ("Error: mine\n    at app.mjs:12\n    at call (native)\n", Some("the tool failed at app.mjs:12")),
            (
                "Traceback (most recent call last):\n  File \"/0/app.py\", line 3, in greet\n    return f()\n  \
                 File \"/0/app.py\", line 7, in f\nValueError: mine\n",
                Some("the tool failed at /0/app.py:7"),
            ),
            (
                "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'greet': \
                 Exception(Exception { message: Some(\"no\"), stack: Some(\"    at inner (/app.js:3:15)\\n    at greet \
                 (/app.js:14:18)\\n\") })\n",
                Some("the tool failed at app.js:3:15"),
            ),
            ("at noon (see notes)\nlooking at a.js: fine\n", None),
            ("", None),
        ] {
            let hint = hint(log, "tool error: fail: no such thing");
            let found = hint.as_deref().and_then(|hint| hint.split(';').next());
            assert_eq!(found, place, "{log:?}");
        }
        let long = format!("panicked at {}.rs:1:1:", "x".repeat(MAX_LENGTH));
        assert_eq!(hint(&long, ""), None);
        let inert = hint("panicked at \u{1b}[2J.rs:1:1:", "").expect("a place");
        assert!(!inert.contains('\u{1b}'), "{inert}");
    }
}
