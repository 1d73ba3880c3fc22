//! Problems of a script, as its author reads them: one message and a place. Owns the messages for the interpreter's own
//! errors.

use std::fmt::Display;

use starlark::ErrorKind;
use starlark::codemap::FileSpan;

use crate::bindings::exports::toolcrib::script::interpreter::Problem;
use crate::evaluate::MAX_CALLS;

/// Maximum characters of a message.
const MAX_MESSAGE: usize = 2000;

impl Problem {
    /// Problem of the script as a whole.
    pub(crate) fn whole(message: impl Display) -> Self {
        Self { line: 0, column: 0, message: bounded(&message.to_string()) }
    }

    /// Problem at a place.
    pub(crate) fn at(place: &FileSpan, message: impl Display) -> Self {
        let begin = place.resolve_span().begin;
        Self { line: count(begin.line), column: count(begin.column), message: bounded(&message.to_string()) }
    }

    /// Names the part of the script that has the problem.
    pub(crate) fn of(self, part: &str) -> Self {
        Self { message: bounded(&format!("{part}: {}", self.message)), ..self }
    }
}

impl From<starlark::Error> for Problem {
    fn from(error: starlark::Error) -> Self {
        let message = match error.kind() {
            // The function writes a space before every value.
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

/// Converts a count from 0 into a count from 1.
fn count(from_zero: usize) -> u32 {
    u32::try_from(from_zero).unwrap_or(u32::MAX).saturating_add(1)
}

fn bounded(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        // The mark replaces the last character.
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
