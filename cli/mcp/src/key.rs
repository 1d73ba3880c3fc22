//! Key of a call, which its client states for a request that it may repeat, and the answer to such a repetition.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde_json::{Map, Value, json};
use toolcrib::flow::Label;
use toolcrib_base::render;

use super::access::Identity;
use super::answer::LABEL;
use super::handler::{Handler, invalid};
use super::once::{KeyedCall, MAX_KEY_LEN, Once};
use super::publication::Published;

/// Key in the metadata of a request.
const META: &str = "toolcrib/idempotencyKey";
/// Header of a request over HTTP.
const HEADER: &str = "idempotency-key";
/// Mark in the metadata of a result that an earlier request has got.
const REPEATED: &str = "toolcrib/repeated";

/// Request with a key.
pub(super) enum Keyed {
    /// The call is to be made.
    Made(KeyedCall),
    /// The call was made before: this is the answer.
    Before(Box<CallToolResult>),
}

impl Handler {
    /// Looks for the call of an earlier request with the same key. `request` is the text of the name and the arguments.
    pub(super) async fn keyed(
        &self,
        (key, request): (String, String),
        name: &str,
        published: &Arc<Published>,
        identity: &Identity,
    ) -> Result<Keyed, ErrorData> {
        let missing = || invalid("this server keeps no keys of calls: it needs `--state-dir`".to_owned());
        let calls = self.once.clone().ok_or_else(missing)?;
        let client = identity.name.clone();
        let begun = tokio::task::spawn_blocking(move || calls.begin(&client, &key, &request)).await;
        let failed = |reason: String| {
            render::warning(&format!("a call with a key is refused: {reason}"));
            ErrorData::internal_error("the key of the call cannot be kept, so the call is not made", None)
        };
        let begun = begun.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        let refused = |message: String| {
            let text = json!({ "error": message }).to_string();
            Ok(Keyed::Before(Box::new(CallToolResult::error(vec![ContentBlock::text(text)]))))
        };
        match begun {
            Once::New(call) => Ok(Keyed::Made(call)),
            Once::Without(reason) => refused(reason),
            Once::Ended(result) => repeated(result, published, identity).map(|result| Keyed::Before(Box::new(result))),
            Once::Lost(call, _) if may_repeat(published, name) => {
                let again = tokio::task::spawn_blocking(move || call.store()).await;
                let again = again.map_err(|error| failed(error.to_string()))?;
                again.map(Keyed::Made).map_err(|error| failed(error.to_string()))
            }
            Once::Lost(_, begun) => refused(format!(
                "the call with this key began at {begun:.0} and did not end: it was stopped, or its server was. Its effect is \
                 unknown. It is not made again, because nothing shows that a repetition changes nothing: look at the effect, and \
                 call with a new key if it is missing"
            )),
        }
    }
}

/// Returns `true` if a second call of a tool changes nothing.
fn may_repeat(published: &Published, name: &str) -> bool {
    let annotations = published.catalog.tool(name).and_then(|tool| tool.annotations.as_ref());
    annotations.is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
}

/// Returns the result of an earlier request. The conversation may be a new one, which has not read it yet.
fn repeated(result: Value, published: &Arc<Published>, identity: &Identity) -> Result<CallToolResult, ErrorData> {
    let unreadable = || ErrorData::internal_error("the kept result of the call cannot be read", None);
    let mut result: CallToolResult = serde_json::from_value(result).map_err(|_| unreadable())?;
    let meta = result.meta.get_or_insert_default();
    if let Some(label) = meta.get(LABEL) {
        let label = Label::stated(label, "result").map_err(|_| unreadable())?;
        published.session(&identity.name).add_label(&label);
    }
    meta.insert(REPEATED.to_owned(), json!(true));
    Ok(result)
}

/// Returns the key of a request, from its metadata or its header.
///
/// # Errors
///
/// The key is malformed, or the two differ.
pub(super) fn of(meta: &Map<String, Value>, parts: Option<&Parts>) -> Result<Option<String>, ErrorData> {
    let in_meta = match meta.get(META) {
        None => None,
        Some(Value::String(key)) => Some(key.as_str()),
        Some(_) => return Err(invalid(format!("`_meta`, `{META}`: expected a string"))),
    };
    let in_header = match parts.and_then(|parts| parts.headers.get(HEADER)) {
        None => None,
        // A string with or without its quotes.
        Some(value) => value.to_str().ok().map(|value| value.trim().trim_matches('"')).map_or_else(
            || Err(invalid(format!("`{HEADER}`: expected visible characters of ASCII"))),
            |key| Ok(Some(key)),
        )?,
    };
    let key = match (in_meta, in_header) {
        (Some(one), Some(other)) if one != other => {
            return Err(invalid(format!("`{META}` and the header `{HEADER}` differ")));
        }
        (one, other) => one.or(other),
    };
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY_LEN || key.chars().any(char::is_control) => {
            Err(invalid(format!("the key of a call has 1 to {MAX_KEY_LEN} bytes and no control characters")))
        }
        key => Ok(key.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(key: Value) -> Map<String, Value> {
        Map::from_iter([(META.to_owned(), key)])
    }

    fn header(value: &str) -> Parts {
        http::Request::builder().header(HEADER, value).body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_key_is_in_the_metadata_or_the_header_and_the_same_in_both() {
        let none = Map::new();
        assert_eq!(of(&none, None), Ok(None));
        assert_eq!(of(&meta(json!("a")), None).unwrap().unwrap(), "a");
        assert_eq!(of(&none, Some(&header("\"a b\""))).unwrap().unwrap(), "a b");
        assert_eq!(of(&meta(json!("a")), Some(&header("a"))).unwrap().unwrap(), "a");
        assert!(of(&meta(json!("a")), Some(&header("b"))).is_err());
        for wrong in [json!(1), json!(""), json!("a\n"), json!("x".repeat(MAX_KEY_LEN + 1))] {
            assert!(of(&meta(wrong.clone()), None).is_err(), "{wrong}");
        }
    }
}
