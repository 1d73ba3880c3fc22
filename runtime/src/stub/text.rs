//! Texts of strangers in comments and literals. No text ends the comment or literal that it is in, starts a directive for a
//! type checker, or holds characters that a reader does not see.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::call::Flag;
use crate::stub::StubLanguage;

/// Maximum characters of a default value.
const MAX_DEFAULT: usize = 60;
/// Maximum nesting of a default value.
const MAX_DEFAULT_DEPTH: usize = 4;
/// Words without a meaning of their own in the description of an argument.
const FILLERS: [&str; 12] = ["a", "an", "the", "of", "to", "for", "in", "on", "and", "is", "this", "its"];

/// Returns a text on one line without invisible characters, cut to a number of characters.
pub(super) fn one_line(text: &str, maximum: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for c in text.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if is_hidden(line.chars().next_back(), c) || c == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        if count == maximum {
            let word = line.trim_end_matches(|c| c != ' ').trim_end();
            // A text without spaces is cut in a word.
            let kept = if word.len() * 2 > line.len() { word } else { line.trim_end() };
            return format!("{kept}…");
        }
        line.push(c);
        count += 1;
    }
    line.truncate(line.trim_end().len());
    line
}

fn is_hidden(before: Option<char>, c: char) -> bool {
    c.is_control() || Flag::unseen(before, c).is_some()
}

/// Returns a text that can follow `# ` or `// `, also at the end of a line.
pub(super) fn comment(text: &str, maximum: usize, language: StubLanguage) -> String {
    let line = one_line(text, maximum);
    match language {
        // A type comment, or a setting of a type checker.
        StubLanguage::Python => ["type", "mypy", "pyright", "noqa"]
            .into_iter()
            .fold(line, |line, word| line.replace(&format!("{word}:"), &format!("{word} :"))),
        StubLanguage::Typescript => line.replace("@ts-", "@ ts-"),
    }
}

/// Returns a text that can be between `/**` and `*/`.
pub(super) fn block_comment(text: &str, maximum: usize) -> String {
    comment(text, maximum, StubLanguage::Typescript).replace("*/", "*\\/")
}

/// Returns a text between three quotation marks.
pub(super) fn docstring(text: &str, maximum: usize) -> String {
    let line = one_line(text, maximum);
    let mut literal = String::from("\"\"\"");
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\\' || c == '"' && matches!(rest.peek(), None | Some('"')) {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal + "\"\"\""
}

/// Returns a string literal.
pub(super) fn quoted(text: &str, language: StubLanguage) -> String {
    let mut literal = String::from("\"");
    let mut before = None;
    for c in text.chars() {
        let code = u32::from(c);
        let written = match (c, language) {
            ('"' | '\\', _) => write!(literal, "\\{c}"),
            ('\n', _) => write!(literal, "\\n"),
            ('\t', _) => write!(literal, "\\t"),
            _ if !is_hidden(before, c) => write!(literal, "{c}"),
            _ if code <= 0xffff => write!(literal, "\\u{code:04x}"),
            (_, StubLanguage::Python) => write!(literal, "\\U{code:08x}"),
            (_, StubLanguage::Typescript) => write!(literal, "\\u{{{code:x}}}"),
        };
        written.expect("a string takes any text");
        before = Some(c);
    }
    literal + "\""
}

/// Returns the default value of an argument or field as a literal; `None` if it has none, or a long or deep one.
pub(super) fn default(value: &Value, language: StubLanguage) -> Option<String> {
    let mut literal = String::new();
    write_value(value, language, MAX_DEFAULT_DEPTH, &mut literal)?;
    Some(literal)
}

fn write_value(value: &Value, language: StubLanguage, depth: usize, literal: &mut String) -> Option<()> {
    let is_python = matches!(language, StubLanguage::Python);
    match value {
        Value::Null => *literal += if is_python { "None" } else { "null" },
        Value::Bool(true) => *literal += if is_python { "True" } else { "true" },
        Value::Bool(false) => *literal += if is_python { "False" } else { "false" },
        Value::Number(number) => *literal += &number.to_string(),
        Value::String(text) if text.len() > MAX_DEFAULT => return None,
        Value::String(text) => *literal += &quoted(text, language),
        Value::Array(_) | Value::Object(_) if depth == 0 => return None,
        Value::Array(items) => {
            *literal += "[";
            for (place, item) in items.iter().enumerate() {
                *literal += if place > 0 { ", " } else { "" };
                write_value(item, language, depth - 1, literal)?;
            }
            *literal += "]";
        }
        Value::Object(fields) => {
            *literal += "{";
            for (place, (name, item)) in fields.iter().enumerate() {
                *literal += if place > 0 { ", " } else { "" };
                write_value(&Value::String(name.clone()), language, depth - 1, literal)?;
                *literal += ": ";
                write_value(item, language, depth - 1, literal)?;
            }
            *literal += "}";
        }
    }
    (literal.chars().count() <= MAX_DEFAULT).then_some(())
}

/// Returns `true` if a description has a word that the names do not have.
pub(super) fn adds(description: &str, names: &[&str]) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        parts.map(|part| part.trim_end_matches('s').to_lowercase()).collect()
    };
    let known: HashSet<String> = names.iter().chain(&FILLERS).flat_map(|name| words(name)).collect();
    !words(description).is_subset(&known)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::StubLanguage::{Python, Typescript};
    use super::*;

    #[test]
    fn a_line_is_cut_between_words_and_shows_what_it_holds() {
        assert_eq!(one_line(" a\n\tb \u{202e}c\u{0}d\u{200b} ", 100), "a b cd");
        assert_eq!(one_line("one two three", 13), "one two three");
        assert_eq!(one_line("one two three", 12), "one two…");
        assert_eq!(one_line(&"x".repeat(50), 10), format!("{}…", "x".repeat(10)));
    }

    #[test]
    fn no_text_leaves_its_comment_or_becomes_a_directive() {
        assert_eq!(block_comment("a */ b **/*/ c", 99), r"a *\/ b **\/*\/ c");
        assert_eq!(comment("@ts-ignore", 99, Typescript), "@ ts-ignore");
        assert_eq!(comment("type: ignore # pyright: basic", 99, Python), "type : ignore # pyright : basic");
        for (text, literal) in [(r#"a"b"#, r#"a"b"#), (r#"a\""""#, r#"a\\\"\"\""#), (r#""" b"#, r#"\"" b"#)] {
            assert_eq!(docstring(text, 99), format!("\"\"\"{literal}\"\"\""));
        }
    }

    #[test]
    fn a_literal_escapes_what_ends_or_hides_it() {
        assert_eq!(quoted("a\"\\\n\r\u{202e}é", Python), r#""a\"\\\n\u000d\u202eé""#);
        assert_eq!(quoted("\u{e0041}", Python), r#""\U000e0041""#);
        assert_eq!(quoted("\u{e0041}", Typescript), r#""\u{e0041}""#);
    }

    #[test]
    fn a_long_or_deep_default_is_left_out() {
        assert_eq!(default(&json!({"a": [true, null]}), Python).unwrap(), r#"{"a": [True, None]}"#);
        assert_eq!(default(&json!([false, 1.5]), Typescript).unwrap(), "[false, 1.5]");
        assert!(default(&json!("x".repeat(MAX_DEFAULT - 2)), Python).is_some());
        assert!(default(&json!("x".repeat(MAX_DEFAULT - 1)), Python).is_none());
        assert!(default(&json!(vec![1; 100]), Python).is_none());
        assert!(default(&json!([[[[[]]]]]), Python).is_none());
    }

    #[test]
    fn a_description_made_of_names_adds_nothing() {
        assert!(!adds("Title of the chart.", &["title", "chart"]));
        assert!(!adds("Old text", &["old", "text_diff"]));
        assert!(adds("Title, at most 5 words", &["title", "chart"]));
    }
}
