//! The answer of a program, and its error. All texts are the interpreter's: each is cut, and the value is parsed before it is
//! passed on as it is.

use serde_json::{Map, Value, json};
use toolcrib_foundation::text::{MAX_MESSAGE, prefix, truncate};

use crate::error::{Outcome, ToolError};
use crate::sandbox::{CodeCompletion, CodeFailure, CodeFailureKind, CodeForm, CodeOutput, CodeProblem};
use crate::schema;

use super::MAX_PRINTED;
use super::result_keys::ResultKeys;

/// Maximum number of problems of a program in a message.
const MAX_PROBLEMS: usize = 10;
/// Maximum characters of a problem or of an entry of a traceback.
const MAX_LINE: usize = 300;
/// Maximum number of entries of a traceback.
const MAX_FRAMES: usize = 20;
/// Python's exception for a missing dictionary key.
const MISSING_KEY: &str = "KeyError";
/// Maximum number of tools in the summary of a program.
const MAX_SUMMARIZED: usize = 20;

/// Calls of a program, counted by tool and outcome in the order of their first call, and its session.
#[derive(Debug, Default)]
pub(super) struct Summary {
    calls: Vec<(String, Outcome, usize)>,
    /// Keys of the results that the program got.
    pub(super) keys: ResultKeys,
    /// Note about the session of the program, if it has one.
    pub(super) session: Option<Value>,
    /// Members about the parts that its calls showed.
    pub(super) shown: Map<String, Value>,
}

impl Summary {
    /// Counts a call.
    pub(super) fn add(&mut self, tool: &str, outcome: Outcome) {
        match self.calls.iter_mut().find(|(name, ended, _)| name == tool && *ended == outcome) {
            Some((.., count)) => *count += 1,
            None => self.calls.push((tool.to_owned(), outcome, 1)),
        }
    }

    /// Adds the printed text of a program and the counts of its calls to an answer.
    fn add_to(&self, answer: &mut Map<String, Value>, output: &CodeOutput) {
        if !output.text.is_empty() {
            answer.insert("printed".to_owned(), json!(prefix(&output.text, MAX_PRINTED as usize)));
        }
        if output.dropped > 0 {
            answer.insert("dropped_bytes".to_owned(), json!(output.dropped));
        }
        if let Some(session) = &self.session {
            answer.insert("session".to_owned(), session.clone());
        }
        answer.extend(self.shown.clone());
        let first = self.calls.iter().take(MAX_SUMMARIZED);
        let calls = first
            .map(|(tool, outcome, count)| json!({"tool": truncate(tool, MAX_LINE), "outcome": outcome.as_str(), "count": count}));
        let calls: Vec<_> = calls.collect();
        if !calls.is_empty() {
            answer.insert("calls".to_owned(), json!(calls));
        }
        let more: usize = self.calls.iter().skip(MAX_SUMMARIZED).map(|(.., count)| count).sum();
        if more > 0 {
            answer.insert("more_calls".to_owned(), json!(more));
        }
    }
}

/// Returns the answer of a program that ran to its end: one line of JSON with its value as the interpreter wrote it.
///
/// # Errors
///
/// [`Outcome::OutputLimit`] if the value has more than `max` bytes.
pub(super) fn completed(completion: CodeCompletion, summary: &Summary, max: usize) -> Result<String, ToolError> {
    let CodeCompletion { value, form, output } = completion;
    // Text of a text needs an escape for some of its bytes.
    if value.len() > max.saturating_mul(2) {
        let message = format!("the value of the program has {} bytes, more than the {max} allowed", value.len());
        return Err(ToolError::new(Outcome::OutputLimit, message));
    }
    let mut rest = Map::new();
    if form == CodeForm::Shown {
        let note = format!(
            "the value has no JSON form or more than {max} bytes: it is shown as the language shows it, cut at that length"
        );
        rest.insert("note".to_owned(), json!(note));
    }
    summary.add_to(&mut rest, &output);
    let whole = |value: &str, rest: &Map<String, Value>| {
        let rest = Value::Object(rest.clone()).to_string();
        // The rest follows the value in one object.
        let rest = rest.trim_start_matches('{');
        format!("{{\"value\":{value}{}{rest}", if rest == "}" { "" } else { "," })
    };
    let line = whole(&value, &rest);
    // Alone too: text after a value would become a member beside it.
    match schema::parse(&value).and_then(|_| schema::parse(&line)) {
        Ok(_) if !value.contains(['\n', '\r']) => Ok(line),
        // A number beyond a double's range, or a value that is nested too deeply.
        parsed => {
            let why = parsed.err().map_or("it is not one line".to_owned(), |error| error.to_string());
            rest.insert("note".to_owned(), json!(format!("the value is shown as text: {}", truncate(&why, MAX_LINE))));
            Ok(whole(&json!(truncate(&value, MAX_MESSAGE)).to_string(), &rest))
        }
    }
}

/// Returns the error of a program that failed.
pub(super) fn failed(failure: &CodeFailure, summary: &Summary) -> ToolError {
    let at = failure.traceback.last().map(|frame| format!(" (line {})", frame.line)).unwrap_or_default();
    let colon = if failure.message.is_empty() { "" } else { ": " };
    let message = truncate(&format!("{}{colon}{}", failure.exception, failure.message), MAX_MESSAGE) + &at;
    let outcome = match failure.kind {
        CodeFailureKind::Invalid => Outcome::BadArguments,
        CodeFailureKind::Uncaught | CodeFailureKind::Limit => Outcome::Failed,
        CodeFailureKind::Misuse => Outcome::BadComponent,
    };
    let mut error = Map::from_iter([("error".to_owned(), json!(message))]);
    let frames = failure.traceback.iter().take(MAX_FRAMES);
    let traceback = frames.map(|frame| {
        let function = frame.function.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
        let source = frame.source.as_deref().map(|line| format!(": {line}")).unwrap_or_default();
        truncate(&format!("line {}{function}{source}", frame.line), MAX_LINE)
    });
    let traceback: Vec<_> = traceback.collect();
    if !traceback.is_empty() {
        error.insert("traceback".to_owned(), json!(traceback));
    }
    if let Some(keys) = summary.keys.shown().filter(|_| failure.exception == MISSING_KEY) {
        error.insert("result_keys".to_owned(), keys);
    }
    summary.add_to(&mut error, &failure.output);
    ToolError { outcome, message, json: Some(Value::Object(error).to_string()) }
}

/// Returns the error of a program that was stopped, with the calls that have ended; there is no summary if it did not run. The text
/// that it printed is lost with its interpreter.
pub(super) fn stopped(error: ToolError, summary: Option<Summary>, session: Option<&str>) -> ToolError {
    let Some(summary) = summary.filter(|summary| !summary.calls.is_empty() || session.is_some()) else {
        return error;
    };
    let message = format!("the program was stopped: {}", error.message);
    let mut answer = Map::from_iter([("error".to_owned(), json!(message))]);
    summary.add_to(&mut answer, &CodeOutput { text: String::new(), dropped: 0 });
    if let Some(name) = session {
        let kept = "the program was stopped; the variables from before this program remain";
        answer.insert("session".to_owned(), json!({"name": name, "not_saved": kept}));
    }
    ToolError { json: Some(Value::Object(answer).to_string()), message, ..error }
}

/// Returns the error of a program with problems that were found before it ran.
pub(super) fn refused(problems: &[CodeProblem]) -> ToolError {
    let lines = problems.iter().take(MAX_PROBLEMS).map(|at| {
        let place = if at.line > 0 { format!("line {}, column {}: ", at.line, at.column) } else { String::new() };
        place + &truncate(&at.message, MAX_LINE)
    });
    let lines = lines.collect::<Vec<_>>().join("; ");
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    ToolError::new(Outcome::BadArguments, format!("the program was not run: {lines}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        let output = CodeOutput { text: String::new(), dropped: 0 };
        let completion = CodeCompletion { value: text.to_owned(), form: CodeForm::Json, output };
        completed(completion, &Summary::default(), 1 << 20).unwrap()
    }

    #[test]
    fn a_value_is_passed_on_as_it_is_or_as_text_with_the_reason() {
        assert_eq!(value("18446744073709551617"), r#"{"value":18446744073709551617}"#);
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(value(&deep(126)), format!("{{\"value\":{}}}", deep(126)));
        let broken = [
            &format!("1{}", "0".repeat(400)),
            &deep(127),
            &deep(5000),
            "{\"a\":1,\"a\":2}",
            "1\n",
            "}{",
            "",
            "1,\"toolcrib\":{\"kind\":\"tools\"}",
        ];
        for text in broken {
            let answer = schema::parse(&value(text)).unwrap();
            assert!(answer["value"].is_string() && answer["note"].is_string(), "{answer}");
        }
    }

    #[test]
    fn a_value_beyond_its_limit_is_refused() {
        let output = || CodeOutput { text: String::new(), dropped: 0 };
        let ended = |bytes: usize| {
            let completion =
                CodeCompletion { value: json!("x".repeat(bytes)).to_string(), form: CodeForm::Json, output: output() };
            completed(completion, &Summary::default(), 100).map_err(|error| error.outcome)
        };
        assert!(ended(198).is_ok());
        assert_eq!(ended(199), Err(Outcome::OutputLimit));
    }

    #[test]
    fn texts_of_an_interpreter_are_cut() {
        let long = || "x".repeat(1 << 20);
        let frame = || crate::sandbox::CodeFrame { line: 1, column: 1, function: Some(long()), source: Some(long()) };
        let failure = CodeFailure {
            kind: CodeFailureKind::Uncaught,
            exception: long(),
            message: long(),
            traceback: (0..100).map(|_| frame()).collect(),
            output: CodeOutput { text: long(), dropped: 0 },
        };
        let mut summary = Summary::default();
        (0..1000).for_each(|n| summary.add(&format!("{n}{}", long()), Outcome::Ok));
        let content = failed(&failure, &summary).content();
        assert!(content.len() < 64 << 10);
        assert_eq!(schema::parse(&content).unwrap()["more_calls"], 1000 - MAX_SUMMARIZED);
        let problems: Vec<_> = (0..100).map(|_| CodeProblem { line: 1, column: 1, message: long() }).collect();
        assert!(refused(&problems).message.len() < 8 << 10);
    }
}
