//! Reads a message, or finds a reason to refuse it with the identifier of its request, also in text that is broken or cut.

use std::borrow::Cow;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, RequestId};
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::json;

/// Maximum length of a message in bytes. A longer one is refused, and the connection goes on.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// Mark that some programs write before the first character.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reason to refuse a message, with the identifier of the request if it has one.
#[derive(Debug, PartialEq)]
pub(super) struct RefusedMessage {
    pub(super) error: ErrorData,
    pub(super) id: Option<RequestId>,
}

impl RefusedMessage {
    pub(super) fn new(error: ErrorData, id: Option<RequestId>) -> Box<Self> {
        Box::new(Self { error, id })
    }
}

/// Returns `true` for a request after which the library accepts every message.
pub(super) fn begins(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request.get_meta().protocol_version().is_some(),
    }
}

/// Reads a message; `None` if the line requests nothing.
pub(super) fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<RefusedMessage>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let outline = Outline::of(line);
    let is_json = matches!(error.classify(), Category::Data | Category::Io);
    match (is_json, outline.request()) {
        (true, None) if outline.has_method && !outline.has_id => Ok(None),
        (true, id) => Err(RefusedMessage::new(ErrorData::invalid_request("invalid request", None), id)),
        (false, None) => Ok(None),
        (false, id) => {
            let message: Cow<'static, str> = format!("the request is not valid JSON: {error}").into();
            Err(RefusedMessage::new(ErrorData::parse_error(message, None), id))
        }
    }
}

/// Describes in JSON why a message is refused, under its identifier if it has one.
pub(super) fn refusal(message: &[u8]) -> String {
    let (error, id) = match parse(message) {
        Err(refusal) => (refusal.error, refusal.id),
        // It is JSON only if it is a notification, and the protocol allows no such notification.
        Ok(_) if serde_json::from_slice::<IgnoredAny>(message).is_ok() => {
            (ErrorData::invalid_request("invalid request", None), None)
        }
        Ok(_) => (ErrorData::parse_error("the request is not valid JSON", None), None),
    };
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

/// Refuses a message that is too long, by its start.
pub(super) fn too_long(start: &[u8]) -> Box<RefusedMessage> {
    let message = format!("the message is longer than {} MiB", MAX_MESSAGE >> 20);
    RefusedMessage::new(ErrorData::invalid_request(message, None), Outline::of(start).request())
}

/// Members of a message, which may be broken or incomplete.
#[derive(Debug, Default)]
struct Outline {
    has_method: bool,
    has_id: bool,
    /// Identifier; `None` if it is no identifier or given twice.
    id: Option<RequestId>,
}

impl Outline {
    fn of(text: &[u8]) -> Self {
        let (mut outline, mut depth, mut at) = (Self::default(), 0_usize, 0);
        let mut key: &[u8] = b"";
        while let Some(byte) = text.get(at) {
            let next = if *byte == b'"' { at + string_len(&text[at..]) } else { at + 1 };
            match byte {
                b'"' if depth == 1 => key = &text[at..next],
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b':' if depth == 1 && key == b"\"method\"" => outline.has_method = true,
                b':' if depth == 1 && key == b"\"id\"" => {
                    outline.id = if outline.has_id { None } else { identifier(&text[next..]) };
                    outline.has_id = true;
                }
                _ => {}
            }
            at = next;
        }
        outline
    }

    /// Returns the identifier of a request. An answer of the client to a request of the server has one too, but no method.
    fn request(&self) -> Option<RequestId> {
        self.id.clone().filter(|_| self.has_method)
    }
}

/// Returns the length of the string that begins a text, with its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Reads the identifier at the start of a text that goes on after it.
fn identifier(text: &[u8]) -> Option<RequestId> {
    let text = text.trim_ascii_start();
    text.first().filter(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))?;
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<RequestId>();
    let id = values.next()?.ok()?;
    (values.byte_offset() < text.len()).then_some(id)
}
