//! Renders a call for people and transcripts from the templates of its tool's definition. A model never sees the result.

use std::io::{self, Write};

use serde_json::Value;
use toolcrib_foundation::text::MAX_MESSAGE;

use crate::error::Outcome;
use crate::tool::Rendering;

/// Maximum characters of one argument in a line.
const MAX_VALUE_LEN: usize = 120;
/// Maximum characters of one argument in a question's summary, without its quotes.
const MAX_SUMMARY_LEN: usize = 60;

/// Returns `true` if the definition has any template.
pub(super) fn has_any(rendering: &Rendering) -> bool {
    let Rendering {
        ui_summary,
        activity_description,
        rejected_render_hint,
        error_render_hint,
        transcript_search_text,
        ..
    } = rendering;
    [ui_summary, activity_description, rejected_render_hint, error_render_hint, transcript_search_text]
        .iter()
        .any(|template| template.value.is_some())
}

/// Renders the call and its outcome in one line.
pub(super) fn display(rendering: &Rendering, outcome: Outcome, arguments: &Value) -> Option<String> {
    let summary = &rendering.ui_summary.value;
    let template = match outcome {
        Outcome::Ok => summary,
        Outcome::Denied => {
            rendering.rejected_render_hint.value.as_ref().map_or(summary, |_| &rendering.rejected_render_hint.value)
        }
        _ => rendering.error_render_hint.value.as_ref().map_or(summary, |_| &rendering.error_render_hint.value),
    };
    template.as_deref().map(|template| fill(template, arguments))
}

/// Renders the call in one line for a question. Arguments that could be read as words of the template are quoted, and of long ones
/// the beginning and the end are shown.
pub(super) fn summary(rendering: &Rendering, arguments: &Value) -> Option<String> {
    let template = rendering.ui_summary.value.as_deref()?;
    let Value::Object(arguments) = arguments else { return Some(fill(template, arguments)) };
    let legible = arguments.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.clone(), |text| Value::String(legible(text)));
        (name.clone(), value)
    });
    Some(fill(template, &Value::Object(legible.collect())))
}

/// Shortens a text in its middle, and quotes it unless it is a plain path, name, number or address.
fn legible(text: &str) -> String {
    let length = text.chars().count();
    let text = match length > MAX_SUMMARY_LEN {
        false => text.to_owned(),
        true => {
            let (head, tail) =
                (text.chars().take(MAX_SUMMARY_LEN / 2), text.chars().skip(length - MAX_SUMMARY_LEN / 2));
            head.chain(['…']).chain(tail).collect()
        }
    };
    let is_plain = |c: char| c.is_alphanumeric() || "._-/~+@=:,#%?&…".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("{text:?}") }
}

/// Renders a preview of the call.
pub(super) fn preview(rendering: &Rendering, arguments: &Value) -> Option<String> {
    let template = rendering.activity_description.value.as_ref().or(rendering.ui_summary.value.as_ref());
    template.map(|template| fill(template, arguments))
}

/// Renders the search text of the call for transcripts.
pub(super) fn transcript(rendering: &Rendering, arguments: &Value) -> Option<String> {
    rendering.transcript_search_text.value.as_deref().map(|template| fill(template, arguments))
}

/// Replaces each `{argument}` in a template by the argument of that name, or by nothing if there is no such argument.
fn fill(template: &str, arguments: &Value) -> String {
    let mut line = Line(String::new(), MAX_MESSAGE);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{').filter(|_| line.1 > 0) {
        line.push(before, usize::MAX);
        let Some((name, after)) = after.split_once('}') else {
            line.push("{", 1);
            rest = after;
            continue;
        };
        match arguments.get(name) {
            Some(Value::String(text)) => line.push(text, MAX_VALUE_LEN),
            Some(value) => line.push(&prefix(value), MAX_VALUE_LEN),
            None => {}
        }
        rest = after;
    }
    line.push(rest, usize::MAX);
    line.0
}

/// A line, with the number of characters that may be added.
struct Line(String, usize);

impl Line {
    fn push(&mut self, text: &str, max: usize) {
        let Self(line, left) = self;
        let before = line.len();
        line.extend(text.chars().take(max.min(*left)));
        *left -= line[before..].chars().count();
    }
}

/// Returns the first part of a value's JSON, as long as a line can show.
fn prefix(value: &Value) -> String {
    /// A writer that accepts a bounded number of bytes and then fails.
    struct Bounded(Vec<u8>);

    impl Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = (MAX_VALUE_LEN * 4).saturating_sub(self.0.len());
            self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
            Ok(bytes.len().min(room))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut room = Bounded(Vec::new());
    // Writing stops at the bound; the rest is not shown.
    let _ = serde_json::to_writer(&mut room, value);
    String::from_utf8_lossy(&room.0).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_once_and_bounded() {
        let arguments = json!({"path": "{n}", "n": 3, "long": "x".repeat(5000)});
        assert_eq!(fill("read {path} from {n}{gone} {", &arguments), "read {n} from 3 {");
        assert_eq!(fill("{long}", &arguments).len(), MAX_VALUE_LEN);
        assert_eq!(fill(&"{long}".repeat(64), &arguments).len(), MAX_MESSAGE);
    }

    #[test]
    fn an_argument_cannot_pass_for_words_of_a_summary() {
        assert_eq!(legible("notes/a-1.md"), "notes/a-1.md");
        for text in ["a (moved)", "a\nb", " a", ""] {
            assert_eq!(legible(text), format!("{text:?}"));
        }
        let long = legible(&format!("keep/{}/big", "x".repeat(200)));
        assert!(long.starts_with("keep/xx") && long.ends_with("xx/big"), "{long}");
    }

    #[test]
    fn a_large_argument_is_written_no_further_than_it_is_shown() {
        let arguments = json!({"rows": vec![json!({"a": "é"}); 200_000]});
        let start = std::time::Instant::now();
        let line = fill(&"{rows} ".repeat(64), &arguments);
        assert!(line.starts_with(r#"[{"a":"é"},{"a":"é"}"#), "{line}");
        assert_eq!(line.chars().count(), MAX_MESSAGE);
        assert!(start.elapsed().as_millis() < 500, "{:?}", start.elapsed());
    }
}
