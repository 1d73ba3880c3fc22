//! Messages of JSON-RPC, as a server may send them.

use serde_json::{Map, Value, json};
use toolcrib_foundation::json::{Limits, parse_within};

use super::fault::{Fault, shown};

/// Limits of a message.
const LIMITS: Limits = Limits { depth: 100, values: 1 << 20 };
/// Size of a message that is read aside, in bytes: reading it would hold up other calls.
const LARGE: usize = 256 << 10;
/// Maximum characters of an error's message.
const MAX_MESSAGE: usize = 4096;

/// Message of a server.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// Answer to the request with this identifier.
    Answer(Value, Result<Value, RpcError>),
    /// Request with its identifier.
    Request(Value, String),
    /// Notification.
    Notification(String, Value),
}

/// Error in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

/// Reads a message, a large one on a thread for blocking work.
pub(super) async fn incoming(bytes: Vec<u8>) -> Result<Incoming, Fault> {
    if bytes.len() < LARGE {
        return read(&bytes);
    }
    aside(move || read(&bytes)).await
}

/// Performs work over a server's data on a thread for blocking work.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Fault::foreign("its answer cannot be read")))
}

/// Reads a message.
pub(super) fn read(bytes: &[u8]) -> Result<Incoming, Fault> {
    let value = parse_within(bytes, LIMITS).map_err(|error| Fault::foreign(format!("{error}")))?;
    let quoted = || shown(&String::from_utf8_lossy(&bytes[..bytes.len().min(400)]));
    let foreign = |why: &str| Fault::foreign(format!("{why}: `{}`", quoted()));
    let Value::Object(mut message) = value else { return Err(foreign("a message is not an object")) };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(foreign("a message is not of JSON-RPC 2.0"));
    }
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Incoming::Request(id, method)),
        (Some(Value::String(method)), None) => {
            Ok(Incoming::Notification(method, message.remove("params").unwrap_or_default()))
        }
        (Some(_), _) => Err(foreign("a method is not a text")),
        (None, id) => {
            let id = id.unwrap_or_default();
            match (message.remove("result"), message.remove("error")) {
                (Some(result), None) => Ok(Incoming::Answer(id, Ok(result))),
                (None, Some(error)) => Ok(Incoming::Answer(id, Err(RpcError::read(&error)))),
                _ => Err(foreign("an answer has neither a result nor an error, or both")),
            }
        }
    }
}

impl RpcError {
    fn read(error: &Value) -> Self {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        Self {
            code: error["code"].as_i64().unwrap_or_default(),
            message: message.chars().take(MAX_MESSAGE).collect(),
            data: error["data"].clone(),
        }
    }
}

/// Creates a request.
pub(super) fn request(id: u64, method: &str, params: Map<String, Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Creates the answer to a request of the server: a ping is answered, and nothing else is.
pub(super) fn refusal(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => {
            let error = json!({ "code": -32601, "message": "this client answers no requests" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_of_three_and_everything_else_breaks_the_protocol() {
        let read = |text: &str| read(text.as_bytes());
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap(), Incoming::Answer(json!(1), Ok(json!({}))));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":1,"error":7}"#), Ok(Incoming::Answer(_, Err(_)))));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), Ok(Incoming::Request(..))));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"x","params":7}"#), Ok(Incoming::Notification(..))));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(101), "]".repeat(101));
        for text in [
            "",
            "7",
            "[]",
            "null",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#,
            &deep,
        ] {
            assert!(matches!(read(text), Err(Fault::Foreign(_))), "{text}");
        }
    }
}
