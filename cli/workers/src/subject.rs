//! NATS subjects and worker names. Every part of a subject that a stranger chose is checked or encoded.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

/// Queue group that all workers share: each offer reaches one worker.
pub(crate) const QUEUE: &str = "toolcrib";
/// Start of all subjects in this protocol.
const START: &str = "toolcrib.v1";
/// Maximum length of a worker's name.
const MAX_NAME: usize = 64;
/// Maximum bytes of a tool's name in a message.
pub(crate) const MAX_TOOL: usize = 256;

/// Name of a worker: letters, digits, `-` and `_`, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerName(String);

/// Error for a text that is no name of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected at most 64 letters, digits, `-` or `_`")]
pub struct WorkerNameError;

impl WorkerName {
    /// Adds random digits, so that each process has its own name.
    #[must_use]
    pub fn unique(self) -> Self {
        let start: String = self.0.chars().take(MAX_NAME - 7).collect();
        Self(format!("{start}-{:06x}", rand::random::<u32>() & 0xff_ffff))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerName {
    type Err = WorkerNameError;

    fn from_str(text: &str) -> Result<Self, WorkerNameError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(WorkerNameError),
        }
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the subject for offers of a tool's calls; `None` for a digest that is no `sha256:HEX`, or a name that is too long.
pub(crate) fn offers(digest: &str, tool: &str) -> Option<String> {
    let digits = digest.strip_prefix("sha256:")?;
    let is_digest = digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_digest && (1..=MAX_TOOL).contains(&tool.len())).then(|| format!("{START}.call.{digits}.{}", token(tool)))
}

/// Returns the subject of a caller's messages to the worker that accepted the call.
pub(crate) fn control(worker: &WorkerName, call: &str) -> String {
    format!("{START}.control.{worker}.{call}")
}

/// Returns `true` if a worker may answer to a subject that a stranger named: other programs listen to other subjects.
pub(crate) fn is_inbox(subject: &str) -> bool {
    subject.starts_with("_INBOX.")
}

/// Creates the identifier for one attempt.
pub(crate) fn new_call() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Returns `true` for an identifier as [`new_call`] creates them.
pub(crate) fn is_call(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Encodes a name as one token: other bytes than letters, digits, `-` and `_` become `=XX`.
fn token(name: &str) -> String {
    name.bytes().fold(String::with_capacity(name.len()), |mut token, byte| {
        match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            true => token.push(char::from(byte)),
            // Writing to a text does not fail.
            false => _ = write!(token, "={byte:02x}"),
        }
        token
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_tool_stays_within_its_token() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let subject = offers(&digest, "a.b >*=é").unwrap();
        assert!(subject.ends_with(".a=2eb=20=3e=2a=3d=c3=a9"), "{subject}");
        assert_eq!(subject.split('.').count(), 5);
        assert_ne!(offers(&digest, "a=2eb"), offers(&digest, "a.b"));
    }

    #[test]
    fn other_digests_and_long_names_have_no_subject() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for wrong in ["", "sha256:", "sha256:0A", &digest[..70], &digest.to_uppercase(), &format!("{digest}.>")] {
            assert_eq!(offers(wrong, "echo"), None, "{wrong}");
        }
        assert_eq!(offers(&digest, ""), None);
        assert_eq!(offers(&digest, &"a".repeat(MAX_TOOL + 1)), None);
    }

    #[test]
    fn a_name_of_a_worker_is_one_token() {
        for wrong in ["", "a.b", "a b", "*", ">", &"a".repeat(MAX_NAME + 1)] {
            assert!(wrong.parse::<WorkerName>().is_err(), "{wrong}");
        }
        let longest: WorkerName = "a".repeat(MAX_NAME).parse().unwrap();
        let unique = longest.unique();
        assert_eq!(unique.as_str().parse(), Ok(unique));
    }

    #[test]
    fn a_worker_answers_to_inboxes_alone() {
        assert!(is_inbox("_INBOX.x.y"));
        for other in ["toolcrib.v1.call.x.y", "$SRV.PING", "$JS.API", "orders.new", "_INBOX", ""] {
            assert!(!is_inbox(other), "{other}");
        }
    }
}
