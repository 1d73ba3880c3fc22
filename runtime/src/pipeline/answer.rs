//! From what a tool wrote to what the model is told: mapped once, masked, framed, and cut where it is too long.
//!
//! Whenever the host speaks in an answer, it does so in a JSON object with the member `toolcrib`. A tool whose own answer
//! has that member is quoted inside such an object: what looks like a word of the host's always is one. An error is
//! `{"error": …}` whoever words it; the outcome in its receipt tells whether the host did.

use std::time::Instant;

use serde_json::{Value, json};

use crate::audit::Redactions;
use crate::call::{Flag, Persisted, Written};
use crate::error::{Error, Outcome, ToolError};
use crate::results::{self, Results};
use crate::schema::{self, Input};
use crate::tool::{EmptyResult, Persistence, Tool};

use super::ready::Ready;

/// The member by which the host speaks.
pub(super) const FRAME: &str = "toolcrib";
/// The most characters of a preview.
const MAX_PREVIEW_LEN: usize = 4000;

/// An answer, and what is to be noted of it.
pub(super) struct Mapped {
    pub(super) line: String,
    pub(super) written: Written,
    pub(super) flags: Vec<Flag>,
}

/// Turns what a command wrote into its answer; `until` is the end of its call.
///
/// # Errors
///
/// [`Outcome::BadResult`] where the answer is missing and has to be there, or breaks its schema. [`Outcome::Deadline`] where
/// it is not looked through by then.
pub(super) async fn map(tool: &Tool, ready: &Ready, line: Option<String>, until: Instant) -> Result<Mapped, ToolError> {
    let missing = |line| Mapped { line, written: Written::Missing, flags: Vec::new() };
    let Some(line) = line else {
        return match tool.interface.result.empty_result_policy.value {
            EmptyResult::Object => Ok(missing(ready.answer("{}".to_owned(), until).await?.line)),
            EmptyResult::Note => {
                let note = json!({"note": "the tool succeeded and wrote no answer"});
                Ok(missing(framed("missing", note, None)))
            }
            EmptyResult::Error => Err(ToolError::new(Outcome::BadResult, "tool succeeded and wrote no answer")),
        };
    };
    ready.answer(line, until).await
}

/// Looks an answer through: checks, masks and quotes it.
///
/// # Errors
///
/// [`Outcome::BadResult`] where it breaks its schema.
pub(super) fn looked_through(input: &Input, masks: &Redactions, line: &str) -> Result<Mapped, ToolError> {
    let flags = Flag::in_json(line);
    input.check_answer(line)?;
    let masked = (!masks.is_empty()).then(|| schema::parse(line).ok()).flatten().map(|mut value| {
        masks.mask(&mut value);
        value.to_string()
    });
    let line = masked.unwrap_or_else(|| line.to_owned());
    let written = if is_empty(&line) { Written::Empty } else { Written::Value };
    Ok(Mapped { line: quoted(line), written, flags })
}

/// Whether a value holds nothing.
fn is_empty(line: &str) -> bool {
    let inside = |open, close| line.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let hollow = |rest: &str| rest.trim_matches(schema::JSON_SPACE).is_empty();
    matches!(line, "\"\"" | "null") || inside('{', '}').or(inside('[', ']')).is_some_and(hollow)
}

/// Masks and frames an error that a tool worded itself.
pub(super) fn framed_error(mut error: ToolError, masks: &Redactions, most: usize) -> ToolError {
    if !masks.is_empty() {
        let mut message = Value::String(std::mem::take(&mut error.message));
        masks.mask(&mut message);
        error.message = message.as_str().unwrap_or_default().to_owned();
        if let Some(mut value) = error.json.take().and_then(|json| schema::parse(&json).ok()) {
            masks.mask(&mut value);
            error.json = Some(value.to_string());
        }
    }
    // A message is bounded where it is made; an object of the tool's own is passed on only as far as an answer would be.
    error.json = error.json.filter(|json| json.len() <= most && !speaks_for_the_host(json));
    if error.message.len() > most {
        error.message = error.message.chars().take(most).collect();
    }
    error
}

/// An answer in which nothing but the host speaks for the host.
pub(super) fn quoted(line: String) -> String {
    if !speaks_for_the_host(&line) {
        return line;
    }
    // It was checked to be JSON, so it can stand in JSON as it is.
    format!(r#"{{"{FRAME}":{{"kind":"quoted"}},"answer":{line}}}"#)
}

fn speaks_for_the_host(line: &str) -> bool {
    // A key can hide behind escapes; without the one and the other there is none.
    line.starts_with('{')
        && (line.contains(FRAME) || line.contains("\\u"))
        && serde_json::from_str::<Value>(line).is_ok_and(|value| value.get(FRAME).is_some())
}

fn framed(kind: &str, mut words: Value, quoted: Option<(&str, &str)>) -> String {
    words["kind"] = json!(kind);
    let mut answer = json!({ FRAME: words });
    if let Some((head, tail)) = quoted {
        answer["head"] = json!(head);
        answer["tail"] = json!(tail);
    }
    answer.to_string()
}

/// Cuts an answer that is too long for the model, and keeps the whole where there is a place for it.
///
/// # Errors
///
/// A fault of the place: then the answer is not told, since it could not be kept.
pub(super) fn shortened(
    tool: &Tool,
    invocation: &str,
    most: usize,
    line: String,
    results: Option<&Results>,
) -> Result<(String, Option<Persisted>), Error> {
    let strategy = tool.interface.result.persistence_policy_ref.value;
    let fits = line.len() <= most || strategy == Persistence::Inline || line.chars().count() <= most;
    let keeps = matches!(strategy, Persistence::PreviewAndPersist | Persistence::RefOnly);
    let Some(results) = results.filter(|_| keeps && !fits) else {
        if fits || keeps {
            return Ok((line, None));
        }
        let words = json!({"note": "the answer is too long and no result store is configured", "bytes": line.len()});
        let told = match strategy {
            Persistence::NeverPersist => preview(&line, most, words),
            _ => framed("dropped", words, None),
        };
        let persisted = Persisted { strategy, reference: None, bytes: bytes(&line), shown_bytes: bytes(&told) };
        return Ok((told, Some(persisted)));
    };
    let kept = results.put(&tool.name, invocation, line.as_bytes())?;
    let words = json!({
        "note": "the answer is too long to show in full; read it with `read_result` and its reference",
        "reference": kept.reference,
        "bytes": line.len(),
    });
    let told = match strategy {
        Persistence::RefOnly => framed("reference", words, None),
        _ => preview(&line, most, words),
    };
    let persisted =
        Persisted { strategy, reference: Some(kept.reference), bytes: bytes(&line), shown_bytes: bytes(&told) };
    Ok((told, Some(persisted)))
}

fn preview(line: &str, most: usize, mut words: Value) -> String {
    let preview = results::preview(line, most.min(MAX_PREVIEW_LEN));
    words["omittedCharacters"] = json!(preview.left_out);
    framed("preview", words, Some((preview.head, preview.tail)))
}

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_cannot_speak_for_the_host() {
        for line in [r#"{"toolcrib":{"kind":"preview"}}"#, r#"{"a":1,"\u0074oolcrib":{}}"#] {
            let value: Value = serde_json::from_str(&quoted(line.to_owned())).unwrap();
            assert_eq!(value[FRAME]["kind"], "quoted");
            assert_eq!(value["answer"], serde_json::from_str::<Value>(line).unwrap());
        }
        for line in [r#"{"a":{"toolcrib":1}}"#, r#""toolcrib""#, "{}"] {
            assert_eq!(quoted(line.to_owned()), line);
        }
    }
}
