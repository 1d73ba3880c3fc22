//! Messages between a caller and a worker: one line of strict JSON, then the bytes for one part. Every size has a
//! bound, which is checked before anything is read.

use serde::{Deserialize, Serialize};
use serde_json::from_slice;

/// Version of the messages. A worker refuses any other.
pub(crate) const VERSION: u32 = 1;
/// Maximum bytes of a message's line.
pub(crate) const MAX_HEAD: usize = 8 << 10;
/// Maximum bytes of a value in one message.
pub(crate) const MAX_PART: usize = 128 << 10;
/// Maximum bytes of a message.
pub(crate) const MAX_MESSAGE: usize = MAX_HEAD + 1 + MAX_PART;
/// Maximum characters of a reason in a message.
pub(crate) const MAX_REASON: usize = 1024;

/// Offer to make a call, for the workers that serve its tool. It holds no arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Offer {
    pub(crate) version: u32,
    /// Identifier of this attempt.
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) digest: String,
    /// Milliseconds until the caller's deadline.
    pub(crate) deadline_ms: u64,
    /// Milliseconds without a message after which the caller counts the worker as lost.
    pub(crate) silence_ms: u64,
    /// Position in a trace, as `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
}

/// Message of a caller to the worker that accepted its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum CallerMessage {
    /// Starts the call. The bytes after the line are the first part of the arguments.
    Start {
        call: String,
        /// Bytes of all arguments.
        bytes: u64,
    },
    /// Next part of the arguments.
    Part { call: String, index: u32 },
    /// Ends the call.
    Cancel { call: String },
}

/// Message of a worker to a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum WorkerMessage {
    /// The call waits for its start.
    Accepted { call: String, worker: String, version: u32 },
    /// The worker has no free place.
    Busy { call: String, worker: String },
    /// The worker does not take the call.
    Refused { call: String, worker: String, reason: String },
    /// The call runs.
    Alive { call: String },
    /// Progress of the call.
    Progress {
        call: String,
        done: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    /// The call has ended. The bytes after the line are the first part of its report.
    Answer {
        call: String,
        /// Bytes of the whole report.
        bytes: u64,
    },
    /// Next part of the report.
    Part { call: String, index: u32 },
}

impl CallerMessage {
    /// Returns the identifier of the attempt.
    pub(crate) fn call(&self) -> &str {
        match self {
            Self::Start { call, .. } | Self::Part { call, .. } | Self::Cancel { call } => call,
        }
    }
}

impl WorkerMessage {
    /// Returns the identifier of the attempt.
    pub(crate) fn call(&self) -> &str {
        match self {
            Self::Accepted { call, .. }
            | Self::Busy { call, .. }
            | Self::Refused { call, .. }
            | Self::Alive { call }
            | Self::Progress { call, .. }
            | Self::Answer { call, .. }
            | Self::Part { call, .. } => call,
        }
    }
}

/// Writes a message.
pub(crate) fn encode(head: &impl Serialize, part: &[u8]) -> Vec<u8> {
    // Messages have no maps and no floating-point numbers, so writing them does not fail.
    let mut message = serde_json::to_vec(head).unwrap_or_default();
    message.push(b'\n');
    message.extend_from_slice(part);
    message
}

/// Reads a message, and the bytes after its line.
///
/// # Errors
///
/// The reason why it is no message.
pub(crate) fn decode<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<(T, &'a [u8]), String> {
    let (head, part) = split(message)?;
    let head = from_slice(head).map_err(|error| unknown_message(&error))?;
    Ok((head, part))
}

/// Describes a line that is no message, without words of its sender.
fn unknown_message(error: &serde_json::Error) -> String {
    format!("its line is no message of version {VERSION}, at column {}", error.column())
}

/// Reads an offer.
///
/// # Errors
///
/// The reason why it is no offer, or not of this version.
pub(crate) fn decode_offer(message: &[u8]) -> Result<Offer, String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let (head, part) = split(message)?;
    let Versioned { version } = from_slice(head).map_err(|error| unknown_message(&error))?;
    if version != VERSION {
        return Err(format!("version {version} of the messages is unknown: this worker has version {VERSION}"));
    }
    if !part.is_empty() {
        return Err("an offer has nothing after its line".to_owned());
    }
    from_slice(head).map_err(|error| unknown_message(&error))
}

fn split(message: &[u8]) -> Result<(&[u8], &[u8]), String> {
    if message.len() > MAX_MESSAGE {
        return Err(format!("a message has {} bytes, more than the {} allowed", message.len(), MAX_MESSAGE));
    }
    let end = message.iter().take(MAX_HEAD + 1).position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| format!("the line of a message has no end within {MAX_HEAD} bytes"))?;
    let (head, part) = (&message[..end], &message[end + 1..]);
    match part.len() > MAX_PART {
        true => Err(format!("a part has {} bytes, more than the {MAX_PART} allowed", part.len())),
        false => Ok((head, part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(version: u32) -> Offer {
        let (call, tool, digest) = ("0".repeat(32), "echo".to_owned(), format!("sha256:{}", "0".repeat(64)));
        Offer { version, call, tool, digest, deadline_ms: 1, silence_ms: 1, trace: None }
    }

    #[test]
    fn a_message_survives_its_way() {
        assert_eq!(decode_offer(&encode(&offer(VERSION), b"")), Ok(offer(VERSION)));
        let answer = WorkerMessage::Answer { call: "1".to_owned(), bytes: 3 };
        assert_eq!(decode(&encode(&answer, b"a\nb")), Ok((answer, &b"a\nb"[..])));
        let progress = WorkerMessage::Progress { call: "1".to_owned(), done: 1, total: None };
        assert_eq!(decode(&encode(&progress, b"")), Ok((progress, &b""[..])));
    }

    #[test]
    fn an_unknown_version_is_refused_by_its_number_whatever_else_it_has() {
        let later = br#"{"version":2,"hyperdrive":true}
"#;
        assert!(decode_offer(later).unwrap_err().contains("version 2"));
        assert!(decode_offer(&encode(&offer(VERSION), b"x")).is_err());
    }

    #[test]
    fn a_message_with_anything_unknown_is_refused() {
        for head in [
            r#"{"kind":"alive","call":"1","more":1}"#,
            r#"{"kind":"alive","call":"1","call":"2"}"#,
            r#"{"kind":"launch","call":"1"}"#,
            r#"{"kind":"alive"}"#,
            r#"{"kind":"answer","call":"1","bytes":-1}"#,
            r#"{"kind":"part","call":"1","index":4294967296}"#,
            "{}",
            "",
        ] {
            assert!(decode::<WorkerMessage>(format!("{head}\n").as_bytes()).is_err(), "{head}");
        }
    }

    #[test]
    fn each_size_has_a_bound_that_is_checked_first() {
        let part = WorkerMessage::Part { call: "1".to_owned(), index: 0 };
        let size = |bytes: usize| decode::<WorkerMessage>(&encode(&part, &vec![0; bytes])).map(|(_, part)| part.len());
        assert_eq!(size(MAX_PART), Ok(MAX_PART));
        assert!(size(MAX_PART + 1).unwrap_err().contains("more than"));
        let long = WorkerMessage::Alive { call: "1".repeat(MAX_HEAD) };
        assert!(decode::<WorkerMessage>(&encode(&long, b"")).unwrap_err().contains("no end"));
        assert!(decode::<WorkerMessage>(&[]).is_err());
    }
}
