//! Answer of a command from its output. A failure is the error object that the command writes to standard error, or its text,
//! wrapped once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr2;
use serde_json::{Value, json};

use crate::audit::Redactions;
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::run::Answer;
use crate::pipeline::state::MAX_ERROR_LEN;
use crate::schema;
use crate::tool::OutputForm;

/// Ends of lines of JSON.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// Returns the answer of a command that succeeded; `None` if it wrote none. `form` is `None` for one line of JSON.
///
/// # Errors
///
/// [`Outcome::BadResult`] for output in another form.
pub(super) fn of_success(
    form: Option<OutputForm>,
    stdout: Vec<u8>,
    masks: &Redactions,
    recorder: &mut CallRecorder<'_>,
) -> Answer {
    let Some(form) = form else { return line(recorder.decode(stdout)) };
    if form == OutputForm::Bytes {
        return bytes(&stdout, masks);
    }
    in_form(form, recorder.decode(stdout))
}

/// Returns bytes as base64, in which no mask finds anything.
fn bytes(stdout: &[u8], masks: &Redactions) -> Answer {
    if !masks.is_empty() {
        let text = Value::from(String::from_utf8_lossy(stdout));
        let mut masked = text.clone();
        masks.mask(&mut masked);
        if masked != text {
            return Err(bad("the answer is withheld: its bytes have text that is masked".to_owned()));
        }
    }
    Ok(Some(json!(STANDARD.encode(stdout)).to_string()))
}

/// Returns the one line of JSON in a text.
fn line(mut text: String) -> Answer {
    let line = text.trim_matches(schema::JSON_SPACE);
    if line.is_empty() {
        return Ok(None);
    }
    let [feed, back] = LINE_ENDS.map(|end| end as u8);
    if memchr2(feed, back, line.as_bytes()).is_some() {
        return Err(bad("tool answered with several lines where one line of JSON is required".into()));
    }
    schema::check_line(line).map_err(not_json)?;
    let (length, start) = (line.len(), text.len() - text.trim_start_matches(schema::JSON_SPACE).len());
    text.truncate(start + length);
    text.drain(..start);
    Ok(Some(text))
}

fn in_form(form: OutputForm, text: String) -> Answer {
    let lines = || text.split(LINE_ENDS).filter(|line| !line.trim_matches(schema::JSON_SPACE).is_empty());
    let answer = match form {
        OutputForm::Json if lines().nth(1).is_none() => return line(text),
        OutputForm::Json => {
            schema::check_line(&text).map_err(not_json)?;
            on_one_line(&text)
        }
        OutputForm::JsonLines => {
            let mut array = String::with_capacity(text.len() + 2);
            array.push('[');
            for (number, line) in lines().enumerate() {
                schema::check_line(line).map_err(|error| {
                    bad(format!("tool answered with something other than JSON in value {}: {error}", number + 1))
                })?;
                array.push_str(if number > 0 { "," } else { "" });
                array.push_str(line.trim_matches(schema::JSON_SPACE));
            }
            array.push(']');
            // One level deeper, it may be too deep.
            schema::check_line(&array).map_err(not_json)?;
            array
        }
        OutputForm::Lines => json!(text.lines().collect::<Vec<_>>()).to_string(),
        OutputForm::Text | OutputForm::Bytes => Value::String(text).to_string(),
    };
    Ok(Some(answer))
}

/// Removes the line breaks between the tokens of a JSON document, and the indentation after them; numbers keep their spelling.
fn on_one_line(json: &str) -> String {
    // JSON has no line break inside a token.
    json.split(LINE_ENDS).map(|line| line.trim_matches(schema::JSON_SPACE)).collect()
}

fn bad(message: String) -> ToolError {
    ToolError::new(Outcome::BadResult, message)
}

fn not_json(error: serde_json::Error) -> ToolError {
    bad(format!("tool answered with something other than JSON: {error}"))
}

/// Returns the error of a command that failed: its standard error with its output, or the one of them that has text.
pub(super) fn failure(exit: i32, stderr: &str, stdout: &str) -> ToolError {
    let text = stderr.trim();
    if let Some(message) = own_error(text) {
        return ToolError { outcome: Outcome::Failed, message, json: Some(text.to_owned()) };
    }
    let output = stdout.trim();
    let (message, json) = match (text.is_empty(), output.is_empty()) {
        (true, true) => (format!("tool failed with exit code {exit}"), None),
        (true, false) => (cut(output), None),
        (false, true) => (cut(text), None),
        (false, false) => {
            let message = cut(text);
            let json = json!({ "error": message, "output": cut(output) }).to_string();
            (message, Some(json))
        }
    };
    ToolError { outcome: Outcome::Failed, message, json }
}

/// Cuts a long text in its middle: a compiler states the cause first, and a traceback last.
fn cut(text: &str) -> String {
    if text.chars().nth(MAX_ERROR_LEN).is_none() {
        return text.to_owned();
    }
    let half = MAX_ERROR_LEN / 2;
    let end = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
    let start = text.char_indices().nth_back(half - 1).map_or(end, |(at, _)| at);
    format!("{}…{}", &text[..end], &text[start..])
}

/// Returns the message of an error object on one line, `{"error": …}`.
pub(in crate::pipeline::run) fn own_error(text: &str) -> Option<String> {
    if text.contains(['\n', '\r']) || !text.starts_with('{') {
        return None;
    }
    let value = schema::parse(text).ok()?;
    match value.get("error")? {
        Value::String(message) => Some(message.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(stdout: &str) -> Result<Option<String>, String> {
        line(stdout.into()).map_err(|error| error.message)
    }

    #[test]
    fn one_line_is_kept_byte_for_byte() {
        let line = "{\"a\":  \"x  y\\n\\u001b\"}";
        assert_eq!(ok(&format!("{line}\n")).unwrap().unwrap(), line);
        assert_eq!(ok("").unwrap(), None);
        assert_eq!(ok(" \n").unwrap(), None);
    }

    #[test]
    fn what_is_not_one_line_of_json_is_refused() {
        for text in ["{}\n{}", "hello", "{", "NaN", "{\"a\":1} x", &"[".repeat(100_000)] {
            assert!(ok(text).is_err());
        }
    }

    #[test]
    fn each_form_of_output_is_one_line_of_json() {
        let of =
            |form, text: &str| in_form(form, text.into()).map(Option::unwrap_or_default).map_err(|error| error.message);
        assert_eq!(of(OutputForm::Text, "a \"b\"\r\n\n").unwrap(), r#""a \"b\"\r\n\n""#);
        assert_eq!(of(OutputForm::Lines, "a\r\n\n b\n").unwrap(), r#"["a",""," b"]"#);
        assert_eq!(of(OutputForm::Lines, "").unwrap(), "[]");
        assert_eq!(
            of(OutputForm::Json, "{\r\n  \"a\": 1.50e1,\n\t\"b\": \"x  y\"\n}\n").unwrap(),
            r#"{"a": 1.50e1,"b": "x  y"}"#
        );
        assert_eq!(of(OutputForm::Json, "[1]\n\n").unwrap(), "[1]");
        assert_eq!(of(OutputForm::JsonLines, "{\"a\": 1}\n\n 2 \r\n").unwrap(), r#"[{"a": 1},2]"#);
        assert_eq!(of(OutputForm::JsonLines, "").unwrap(), "[]");
        assert!(of(OutputForm::Json, "{}\n{}").unwrap_err().contains("other than JSON"));
        assert!(of(OutputForm::Json, "{\"a\":\n\"b\nc\"}").is_err());
        assert!(of(OutputForm::JsonLines, "1\n[2,\n3]").unwrap_err().contains("in value 2"));
    }

    #[test]
    fn a_failure_is_passed_on_or_wrapped_once() {
        let of = |stderr: &str| failure(1, stderr, "").content();
        assert_eq!(of("{\"error\":\"no such zone\",\"zone\":1}\n"), "{\"error\":\"no such zone\",\"zone\":1}");
        assert_eq!(of("plain \"text\"\n"), r#"{"error":"plain \"text\""}"#);
        assert_eq!(of(""), r#"{"error":"tool failed with exit code 1"}"#);
        assert_eq!(of("{\"other\":1}"), r#"{"error":"{\"other\":1}"}"#);
        let long = failure(1, &format!("{}KeyError: 'é'", "é".repeat(10_000)), "").message;
        assert!(long.starts_with("éé") && long.ends_with("éKeyError: 'é'"), "{long}");
        assert_eq!(long.chars().count(), MAX_ERROR_LEN + 1);
        assert_eq!(failure(2, " \n", "1 test failed\n").message, "1 test failed");
        let both = failure(2, "no such file\n", &format!("{}\n", "x".repeat(10_000)));
        let content: Value = serde_json::from_str(&both.content()).unwrap();
        assert_eq!((both.message.as_str(), &content["error"]), ("no such file", &json!("no such file")));
        assert_eq!(content["output"].as_str().map(|output| output.chars().count()), Some(MAX_ERROR_LEN + 1));
    }
}
