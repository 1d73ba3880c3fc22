//! Answer lines: one JSON object a line, of bounded length.

use std::io::{BufRead, ErrorKind};

use serde::Deserialize;
use serde_json::Value;
use toolcrib::policy::ApprovalAnswer;
use toolcrib_base::render::excerpt;

/// Maximum length of a line, in bytes.
pub(super) const MAX_LINE: usize = 65_536;

/// A rejected line: the question that it names, and the reason.
pub(super) type Rejected = (Option<String>, String);

/// One read of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line(Vec<u8>),
    /// A line longer than [`MAX_LINE`]; its rest is skipped.
    TooLong,
    End,
}

/// Answer on one line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerLine {
    #[serde(rename = "type")]
    _kind: Kind,
    id: String,
    answer: Word,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
enum Kind {
    #[serde(rename = "permission_answer")]
    PermissionAnswer,
}

/// Word of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Once,
    Session,
    Always,
    No,
}

impl Word {
    /// Returns the answers to a question: with a `scope`, also for more than one call, and permanently if that is stored.
    pub(super) fn offered(scope: bool, stored: bool) -> Vec<Self> {
        let all = [(Self::Once, true), (Self::Session, scope), (Self::Always, scope && stored), (Self::No, true)];
        all.into_iter().filter(|(_, is_offered)| *is_offered).map(|(word, _)| word).collect()
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::No => "no",
        }
    }
}

impl AnswerLine {
    /// Parses a line.
    ///
    /// # Errors
    ///
    /// The line is not an object with the members of an answer.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Rejected> {
        serde_json::from_slice(line).map_err(|error| {
            let named = serde_json::from_slice::<Value>(line).ok();
            let id = named.as_ref().and_then(|line| line["id"].as_str()).map(excerpt);
            // Each answer is one line of the input, which the event names.
            let error = error.to_string();
            let error = error.split(" at line ").next().unwrap_or_default();
            (id, format!("not an answer: {}", excerpt(error)))
        })
    }

    /// Returns the identifier of the question and the answer.
    ///
    /// # Errors
    ///
    /// The answer has a reason and is not a no.
    pub(super) fn checked(self) -> Result<(String, (Word, ApprovalAnswer)), Rejected> {
        let Self { id, answer: word, reason, .. } = self;
        let answer = match (word, reason) {
            (Word::No, Some(reason)) => ApprovalAnswer::NoBecause(reason),
            (_, Some(_)) => {
                let id = excerpt(&id);
                return Err((Some(id), format!("only `no` takes a `reason`, not `{}`", word.as_str())));
            }
            (Word::Once, None) => ApprovalAnswer::Once,
            (Word::Session, None) => ApprovalAnswer::Session,
            (Word::Always, None) => ApprovalAnswer::Always,
            (Word::No, None) => ApprovalAnswer::No,
        };
        Ok((id, (word, answer)))
    }
}

/// Reads the next line without its line break. An error ends the input.
pub(super) fn next_line(input: &mut dyn BufRead) -> Next {
    let (mut line, mut is_long) = (Vec::new(), false);
    loop {
        let bytes = match input.fill_buf() {
            Ok([]) if line.is_empty() && !is_long => return Next::End,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Next::End,
            Ok(bytes) => bytes,
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        is_long |= line.len() + part.len() > MAX_LINE;
        if !is_long {
            line.extend_from_slice(part);
        }
        let (used, is_last) = (end.map_or(bytes.len(), |end| end + 1), end.is_some() || bytes.is_empty());
        input.consume(used);
        match (is_last, is_long) {
            (true, true) => return Next::TooLong,
            (true, false) => return Next::Line(line),
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_base::render::MAX_EXCERPT;

    #[test]
    fn lines_are_read_whole_up_to_their_maximum_length() {
        let longest = "x".repeat(MAX_LINE);
        let text = format!("a\n{longest}\n{longest}y\n\nlast");
        for capacity in [1, 7, MAX_LINE] {
            let mut input = std::io::BufReader::with_capacity(capacity, text.as_bytes());
            assert_eq!(next_line(&mut input), Next::Line(b"a".to_vec()));
            assert_eq!(next_line(&mut input), Next::Line(longest.clone().into_bytes()));
            assert_eq!(next_line(&mut input), Next::TooLong);
            assert_eq!(next_line(&mut input), Next::Line(Vec::new()));
            assert_eq!(next_line(&mut input), Next::Line(b"last".to_vec()), "without a line break");
            assert_eq!(next_line(&mut input), Next::End);
        }
    }

    #[test]
    fn a_line_that_is_no_answer_is_rejected_with_a_short_reason() {
        for (line, has_id) in [
            ("once", false),
            ("[]", false),
            ("{}", false),
            (r#"{"id": "q1", "answer": "once"}"#, true),
            (r#"{"type": "other", "id": "q1", "answer": "once"}"#, true),
            (r#"{"type": "permission_answer", "id": "q1", "answer": "maybe"}"#, true),
            (r#"{"type": "permission_answer", "id": 1, "answer": "once"}"#, false),
            (r#"{"type": "permission_answer", "id": "q1", "answer": "once", "more": true}"#, true),
            (r#"{"type": "permission_answer", "id": "q1", "id": "q2", "answer": "once"}"#, true),
            ("{\"type\": \"permission_answer\", \"id\": \"q1\", \"answer\": \"once\"} {}", false),
            ("\u{1b}[2J", false),
        ] {
            let (id, message) = AnswerLine::parse(line.as_bytes()).and_then(AnswerLine::checked).unwrap_err();
            assert_eq!(id.is_some(), has_id, "{line}");
            assert!(message.starts_with("not an answer: ") && !message.contains("at line"), "{line}: {message}");
            assert!(message.chars().count() <= MAX_EXCERPT + 20 && !message.contains('\u{1b}'), "{message:?}");
        }
        let reasoned = br#"{"type": "permission_answer", "id": "q1", "answer": "once", "reason": "x"}"#;
        let rejected = AnswerLine::parse(reasoned).and_then(AnswerLine::checked).unwrap_err();
        assert_eq!(rejected, (Some("q1".to_owned()), "only `no` takes a `reason`, not `once`".to_owned()));
    }

    #[test]
    fn the_answers_depend_on_the_question() {
        use Word::{Always, No, Once, Session};
        assert_eq!(Word::offered(true, true), [Once, Session, Always, No]);
        assert_eq!(Word::offered(true, false), [Once, Session, No]);
        assert_eq!(Word::offered(false, true), [Once, No]);
    }
}
