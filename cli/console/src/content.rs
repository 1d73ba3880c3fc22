//! Texts of tools by their form: JSON, separated values and Markdown are shown as such, with the text itself beside them where
//! they differ. Everything stays text: only the elements named here are written.

use std::borrow::Cow;

use maud::{Markup, html};
use serde_json::Value;
use toolcrib_base::render::{counted, legible, one_line};

use super::csv;
use super::layout::{self, cell};
use super::markdown;

/// Maximum bytes of a text whose form is looked for.
const MAX_BYTES: usize = 256 << 10;
/// Maximum rows in a table, and characters in a value.
const MAX_ROWS: usize = 200;
const MAX_VALUE: usize = 400;
/// Maximum JSON parts with their own color; further ones are plain text.
const MAX_TOKENS: usize = 4_000;

/// Form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Markdown,
    Plain,
}

/// Shows a text by its form, cut to `max` characters.
pub(super) fn shown(text: &str, max: usize) -> Markup {
    let (form, inner) = form_of(text);
    in_form(form, &inner, text, max)
}

/// Shows JSON that is formatted already, digit by digit as it was sent; another text as it is.
pub(super) fn exact(text: &str, max: usize) -> Markup {
    if text.starts_with(['{', '[']) { json(text, max) } else { layout::block(text, max) }
}

/// Shows a text by the form that its media type states; `None` for a type that is no text.
pub(super) fn of_type(mime_type: &str, text: &str, max: usize) -> Option<Markup> {
    let kind = mime_type.split(';').next().unwrap_or_default().trim();
    let form = match kind {
        "application/json" => Form::Json,
        "text/csv" | "text/tab-separated-values" => Form::Csv,
        "text/markdown" => Form::Markdown,
        "text/plain" => Form::Plain,
        _ => return None,
    };
    let is_short = text.len() <= MAX_BYTES;
    Some(in_form(if is_short { form } else { Form::Plain }, text, text, max))
}

fn in_form(form: Form, inner: &str, text: &str, max: usize) -> Markup {
    let as_sent = |shown: Markup| {
        html! { (shown) details { summary { "As plain text" } (layout::block(text, max)) } }
    };
    match form {
        Form::Json => match pretty(inner) {
            Some(pretty) if is_exact(&pretty, inner) && inner == text => json(&pretty, max),
            Some(pretty) => as_sent(json(&pretty, max)),
            None => layout::block(text, max),
        },
        Form::Csv => match csv::rows(inner) {
            Some(rows) => as_sent(values(&rows)),
            None => layout::block(text, max),
        },
        Form::Markdown => as_sent(markdown::shown(inner, max)),
        Form::Plain => layout::block(text, max),
    }
}

/// Returns the form of a text, and the text that has it: a JSON string stands for its value.
fn form_of(text: &str) -> (Form, Cow<'_, str>) {
    let plain = (Form::Plain, Cow::Borrowed(text));
    let trimmed = text.trim();
    match trimmed.as_bytes() {
        bytes if bytes.len() > MAX_BYTES => plain,
        [b'{' | b'[', ..] => {
            if pretty(trimmed).is_some() {
                (Form::Json, Cow::Borrowed(text))
            } else {
                plain
            }
        }
        [b'"', .., b'"'] => match serde_json::from_str::<String>(trimmed) {
            Ok(inner) if inner.contains('\n') => match text_form(&inner) {
                Form::Plain => plain,
                form => (form, Cow::Owned(inner)),
            },
            _ => plain,
        },
        _ => (text_form(text), Cow::Borrowed(text)),
    }
}

fn text_form(text: &str) -> Form {
    if is_markdown(text) {
        Form::Markdown
    } else if csv::rows(text).is_some() {
        Form::Csv
    } else {
        Form::Plain
    }
}

/// Returns `true` for a text with several kinds of Markdown marks: programs and logs have one at most.
fn is_markdown(text: &str) -> bool {
    let has_line = |is_it: &dyn Fn(&str) -> bool| text.lines().any(|line| is_it(line.trim()));
    let heading = |line: &str| line.trim_start_matches('#').starts_with(' ') && (1..=6).contains(&hashes(line));
    let ruled = |line: &str| line.starts_with('|') && line.contains('-') && line.chars().all(|c| "|-: ".contains(c));
    let marks = [
        has_line(&heading),
        has_line(&|line| line.starts_with("- ") || line.starts_with("* ") || line.starts_with("1. ")),
        has_line(&|line| line.starts_with("```")),
        text.matches("**").count() >= 2,
        text.contains("](") && text.contains('['),
    ];
    has_line(&ruled) || marks.into_iter().filter(|has| *has).count() >= 2
}

fn hashes(line: &str) -> usize {
    line.len() - line.trim_start_matches('#').len()
}

/// Formats an object or a list of JSON over several lines; `None` for another text.
fn pretty(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value.is_object() || value.is_array()).then(|| serde_json::to_string_pretty(&value).ok())?
}

/// Returns `true` if two JSON texts differ in white space alone.
fn is_exact(one: &str, other: &str) -> bool {
    let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    solid(one) == solid(other)
}

/// Shows formatted JSON with its names and values told apart.
fn json(text: &str, max: usize) -> Markup {
    if text.chars().nth(max).is_some() {
        return layout::block(text, max);
    }
    let mut tokens = tokens(text).into_iter();
    html! {
        pre.json tabindex="0" {
            @for (class, token) in tokens.by_ref().take(MAX_TOKENS) {
                @match class {
                    "" => (legible(token)),
                    class => span class=(class) { (legible(token)) },
                }
            }
            @for (_, token) in tokens { (legible(token)) }
        }
    }
}

/// Splits formatted JSON into names, texts, other values, and all between them.
fn tokens(text: &str) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (class, end) = match first {
            '"' => {
                let end = end_of_string(rest);
                (if rest[end..].starts_with(':') { "name" } else { "text" }, end)
            }
            '-' | '0'..='9' | 'a'..='z' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                ("value", rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
            }
            _ => {
                let begins = |c: char| c == '"' || c == '-' || c.is_ascii_alphanumeric();
                ("", rest.find(begins).unwrap_or(rest.len()))
            }
        };
        // A character that begins nothing known is passed over alone.
        let end = if end == 0 { first.len_utf8() } else { end };
        found.push((class, &rest[..end]));
        rest = &rest[end..];
    }
    found
}

/// Returns the end of the string that a text begins with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Shows separated values as a table; columns of numbers are aligned to the right.
fn values(rows: &[Vec<String>]) -> Markup {
    let is_number = |column: usize| {
        let mut values = rows.iter().skip(1).filter_map(|row| row.get(column)).filter(|value| !value.trim().is_empty());
        values.all(|value| value.trim().parse::<f64>().is_ok())
    };
    let names = rows.first().map(Vec::as_slice).unwrap_or_default();
    let classes: Vec<Option<&str>> = (0..names.len()).map(|column| is_number(column).then_some("num")).collect();
    html! {
        div.values tabindex="0" role="region" aria-label="Separated values" {
            table {
                thead { tr { @for (name, class) in names.iter().zip(&classes) { th scope="col" class=[*class] { (one_line(name)) } } } }
                tbody {
                    @for row in rows.iter().skip(1).take(MAX_ROWS) {
                        tr { @for (value, class) in row.iter().zip(&classes) { td class=[*class] { (cell(value, MAX_VALUE)) } } }
                    }
                }
            }
        }
        @let more = rows.len().saturating_sub(MAX_ROWS + 1);
        @if more > 0 { p.quiet { "and " (counted(more, "more row")) } }
    }
}

/// Shows the lines that a call would change, with added and removed ones told apart.
pub(super) fn difference(text: &str, max: usize) -> Markup {
    if text.chars().nth(max).is_some() {
        return layout::block(text, max);
    }
    html! {
        pre.difference tabindex="0" {
            @for line in text.trim_end().lines() {
                @let shown = legible(line);
                @match line.as_bytes().first() {
                    Some(b'+') => ins { (shown) },
                    Some(b'-') => del { (shown) },
                    Some(b'@') => span.place { (shown) },
                    _ => (shown),
                }
                "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_known_by_its_text() {
        for (text, form) in [
            ("{\"a\": [1, -2.5e3, true, null, \"x\\\"\"]}", Form::Json),
            ("{\"a\": ", Form::Plain),
            ("12", Form::Plain),
            ("\"a,b\\n1,2\\n3,4\\n\"", Form::Csv),
            ("a,b\n1,2\n3,4", Form::Csv),
            ("# Week\n\n**Done:** the roof", Form::Markdown),
            ("|a|b|\n|-|-:|\n|1|2|", Form::Markdown),
            ("# a comment\nx = 1", Form::Plain),
            ("\"one line\"", Form::Plain),
            ("Hello, world", Form::Plain),
        ] {
            assert_eq!(form_of(text).0, form, "{text}");
        }
        assert_eq!(form_of(&format!("[{}1]", "1,".repeat(MAX_BYTES))).0, Form::Plain);
    }

    #[test]
    fn json_is_split_into_its_parts_and_lost_digits_leave_the_text() {
        let page = shown("{\"a\":[1,\"b\"],\"c\":null}", 1_000).into_string();
        for part in [
            "<span class=\"name\">&quot;a&quot;</span>: [",
            "<span class=\"value\">null</span>",
            "<span class=\"text\">&quot;b&quot;</span>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("As plain text"), "{page}");
        for changed in ["{\"a\":1,\"a\":2}", "{\"a\":12345678901234567890123}"] {
            assert!(shown(changed, 1_000).into_string().contains("As plain text"), "{changed}");
        }
    }

    #[test]
    fn separated_values_are_a_table_with_numbers_on_the_right() {
        let page = shown("job,hours\nroof,12.5\npaint,\n", 1_000).into_string();
        assert!(
            page.contains("<th scope=\"col\" class=\"num\">hours</th>") && page.contains("<td><bdi>roof</bdi></td>"),
            "{page}"
        );
        let many: String = (0..500).map(|at| format!("{at},x\n")).collect();
        assert!(shown(&format!("a,b\n{many}"), 90_000).into_string().contains("and 300 more rows"));
    }

    #[test]
    fn no_form_makes_markup_of_a_text() {
        let markup = "<script>alert(1)</script>\u{202e}";
        let string = serde_json::to_string(markup).unwrap();
        for text in [
            format!("{{{string}: {string}}}"),
            format!("a,{markup}\n1,{markup}\n2,{markup}\n"),
            format!("# {markup}\n\n- **{markup}**\n"),
            serde_json::to_string(&format!("a,b\n1,{markup}\n2,3\n")).unwrap(),
        ] {
            let page = shown(&text, 10_000).into_string();
            assert!(
                !page.contains("<script") && !page.contains('\u{202e}') && page.contains("&lt;script&gt;"),
                "{page}"
            );
        }
        for kind in ["application/json", "text/csv; charset=utf-8", "text/markdown", "text/plain"] {
            let page = of_type(kind, markup, 1_000).unwrap().into_string();
            assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        }
        assert!(of_type("text/html", markup, 1_000).is_none());
        let page = difference(&format!("+{markup}\n-{markup}\n"), 1_000).into_string();
        assert!(
            page.contains("<ins>+&lt;script&gt;") && page.contains("<del>") && !page.contains('\u{202e}'),
            "{page}"
        );
    }
}
