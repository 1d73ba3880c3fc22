//! Messages of the protocol as a server sends them.

use serde_json::Value;

use super::fault::{Fault, shown};

/// Revision of the protocol.
pub(super) const REVISION: &str = "2025-11-25";

/// Reads a message; `None` if it is not the answer to the request.
pub(super) fn answer(text: &str, id: u64) -> Result<Option<Value>, Fault> {
    let message = serde_json::from_str::<Value>(text).ok().filter(|message| message["jsonrpc"] == "2.0");
    let message = message.ok_or_else(|| Fault::Foreign(shown(text)))?;
    Ok(Some(message).filter(|message| message["id"] == id && message.get("method").is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_request_counts() {
        assert!(answer(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 1).unwrap().is_some());
        for other in [
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
        ] {
            assert!(answer(other, 1).unwrap().is_none(), "{other}");
        }
        for foreign in ["hello", "{}", "[]", "1"] {
            assert!(matches!(answer(foreign, 1), Err(Fault::Foreign(text)) if text == foreign), "{foreign}");
        }
    }
}
