//! What is wrong in a script, as its author reads it: one message and a place. It owns the words for the
//! interpreter's own errors.

use std::fmt::Display;

use starlark::ErrorKind;
use starlark::codemap::FileSpan;

use crate::bindings::exports::toolcrib::script::interpreter::Problem;
use crate::evaluate::MAX_CALLS;

/// Characters that a message may have.
const MAX_MESSAGE: usize = 2000;

impl Problem {
    /// A problem of the script as a whole.
    pub(crate) fn whole(message: impl Display) -> Self {
        Self { line: 0, column: 0, message: bounded(&message.to_string()) }
    }

    /// A problem at a place.
    pub(crate) fn at(place: &FileSpan, message: impl Display) -> Self {
        let begin = place.resolve_span().begin;
        Self { line: count(begin.line), column: count(begin.column), message: bounded(&message.to_string()) }
    }

    /// The same problem, of a part that has to be named.
    pub(crate) fn of(self, part: &str) -> Self {
        Self { message: bounded(&format!("{part}: {}", self.message)), ..self }
    }
}

impl From<starlark::Error> for Problem {
    fn from(error: starlark::Error) -> Self {
        let message = match error.kind() {
            // The function puts a space before every value that it was given.
            ErrorKind::Fail(text) => {
                let text = text.to_string();
                text.strip_prefix(' ').map(str::to_owned).unwrap_or(text)
            }
            ErrorKind::StackOverflow(_) => {
                format!("calls are nested deeper than {MAX_CALLS}: recursion is not available; rewrite it as a loop")
            }
            kind => kind.to_string().split('\n').map(str::trim).collect::<Vec<_>>().join(" "),
        };
        match error.span() {
            Some(place) => Self::at(place, message),
            None => Self::whole(message),
        }
    }
}

/// From what counts from 0 to what counts from 1.
fn count(from_zero: usize) -> u32 {
    u32::try_from(from_zero).unwrap_or(u32::MAX).saturating_add(1)
}

fn bounded(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        // The last character is taken by the mark.
        Some(_) => message.chars().take(MAX_MESSAGE - 1).chain(['…']).collect(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_to_the_limit() {
        let problem = Problem::whole("ü".repeat(MAX_MESSAGE + 1));
        assert_eq!(problem.message.chars().count(), MAX_MESSAGE);
        assert!(problem.message.ends_with('…'));
        assert_eq!(Problem::whole("ü".repeat(MAX_MESSAGE)).message, "ü".repeat(MAX_MESSAGE));
    }
}
