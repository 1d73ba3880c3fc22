//! Reasons why a server cannot be used, with the messages of its program, and the limits that end a handshake.

use std::fmt;
use std::io;
use std::time::Duration;

use toolcrib_base::render::{one_line, shortened};

/// Maximum time of a handshake.
pub(super) const MAX_TIME: Duration = Duration::from_secs(10);
/// Maximum bytes that a server may send.
pub(super) const MAX_RECEIVED: usize = 32 << 20;
/// Maximum pages of a tool list.
pub(super) const MAX_PAGES: u64 = 200;
/// Maximum characters shown of a server's text.
const MAX_SHOWN: usize = 300;

/// Reason why a handshake failed.
#[derive(Debug)]
pub enum Fault {
    /// The program cannot be started.
    Start(io::Error),
    /// The program ended, or closed its output.
    Ended(ProgramMessages),
    /// There was no answer in time.
    Late {
        /// Method of the request.
        method: &'static str,
        /// Messages of the program.
        messages: ProgramMessages,
    },
    /// The server sent more bytes or pages than a handshake accepts.
    TooMuch,
    /// The server sent this text, which is no message of the protocol.
    Foreign(String),
    /// The server answered with this error.
    Refused {
        /// Method of the request.
        method: &'static str,
        /// Message of the server.
        message: String,
    },
    /// The server cannot be reached.
    Unreachable(String),
    /// The server requires a valid token.
    Unauthorized,
    /// The server answered with this status of HTTP.
    Status(u16),
}

/// Messages of a program on standard error.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramMessages {
    pub(crate) error: Option<String>,
    pub(crate) hint: Option<String>,
}

impl ProgramMessages {
    /// Reads the messages in the output of a program: the first error with its causes, or else the last line.
    pub(super) fn read(text: &str) -> Self {
        let labelled = |label: &'static str| text.lines().filter_map(move |line| line.strip_prefix(label));
        let error: Vec<&str> = labelled("error: ").take(1).chain(labelled("cause: ")).collect();
        let last = || text.lines().rev().find(|line| !line.trim().is_empty());
        let error = if error.is_empty() { last().map(str::to_owned) } else { Some(error.join(": ")) };
        // Hints before the error concern something else.
        let mut after = text.lines().skip_while(|line| !line.starts_with("error: "));
        let hint = after.find_map(|line| line.strip_prefix("hint: "));
        Self { error: error.as_deref().map(shown), hint: hint.map(shown) }
    }

    fn suffix(&self) -> String {
        self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()
    }
}

impl Fault {
    /// Returns the hint of the program.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Ended(messages) | Self::Late { messages, .. } => messages.hint.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "cannot be started: {error}"),
            Self::Ended(messages) if messages.error.is_none() => {
                f.write_str("ended without an answer and without a message")
            }
            Self::Ended(messages) => write!(f, "ended without an answer{}", messages.suffix()),
            Self::Late { method, messages } => {
                write!(f, "no answer to `{method}` within {} s{}", MAX_TIME.as_secs(), messages.suffix())
            }
            Self::TooMuch => write!(f, "sent more than {} MiB or {MAX_PAGES} pages", MAX_RECEIVED >> 20),
            Self::Foreign(text) => write!(f, "sent text that is not an MCP message: `{text}`"),
            Self::Refused { method, message } => write!(f, "refused `{method}`: {message}"),
            Self::Unreachable(reason) => write!(f, "cannot be reached: {reason}"),
            Self::Unauthorized => f.write_str("requires a token, but the entry has no valid token"),
            Self::Status(status) => write!(f, "answered with the HTTP status {status}"),
        }
    }
}

/// Shortens a text of the server for a message.
pub(super) fn shown(text: &str) -> String {
    one_line(&shortened(text.trim(), MAX_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_program_are_read_by_their_labels() {
        let text = "warning: w\nhint: another\nerror: no such file\ncause: denied\nhint: create it\nlast\n";
        let wanted = ProgramMessages { error: Some("no such file: denied".into()), hint: Some("create it".into()) };
        assert_eq!(ProgramMessages::read(text), wanted);
        assert_eq!(
            ProgramMessages::read("Traceback\n  boom\n\n"),
            ProgramMessages { error: Some("boom".into()), hint: None }
        );
        assert_eq!(ProgramMessages::read(""), ProgramMessages::default());
        let long = ProgramMessages::read(&"x".repeat(10 * MAX_SHOWN)).error.unwrap();
        assert_eq!(long.chars().count(), MAX_SHOWN);
    }
}
