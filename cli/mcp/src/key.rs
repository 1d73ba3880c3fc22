//! Key of a call, which its client states for a request that it may repeat, and the answer to such a repetition.

use std::sync::Arc;

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use toolcrib::flow::Label;
use toolcrib_base::render;
use toolcrib_shared_state::StoreError;

use super::access::Identity;
use super::answer::LABEL;
use super::handler::{Handler, invalid};
use super::once::{self, KeyState, KeyedCall, MAX_KEY_LEN};
use super::publication::Published;

/// Key in the metadata of a request.
const META: &str = "toolcrib/idempotencyKey";
/// Header of a request over HTTP.
pub(super) const HEADER: &str = "idempotency-key";
/// Mark in the metadata of a result that an earlier request has got.
const REPEATED: &str = "toolcrib/repeated";

/// Call of a request, by its key.
pub(super) enum KeyLookup {
    /// The request has no key.
    Keyless,
    /// The call is to be made.
    Made(KeyedCall),
    /// The call was made before: this is the answer.
    Before(Box<CallToolResult>),
}

impl Handler {
    /// Looks for the call of an earlier request with the same key, name and arguments.
    pub(super) async fn keyed(
        &self,
        (name, arguments): (&str, &str),
        published: &Arc<Published>,
        identity: &Identity,
        context: &RequestContext<RoleServer>,
    ) -> Result<KeyLookup, ErrorData> {
        let Some(key) = of(&context.meta, context.extensions.get::<Parts>())? else { return Ok(KeyLookup::Keyless) };
        // The order of members says nothing.
        let mut arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        arguments.sort_all_objects();
        let request = json!([name, arguments]).to_string();
        let missing = || invalid("this server keeps no keys of calls: it needs `--state-dir`".to_owned());
        let calls = self.once.clone().ok_or_else(missing)?;
        let failed = |error: StoreError| {
            render::warning(&format!("a call with a key is refused: {error}"));
            let text = match error {
                error if error.is_temporary() => {
                    "the shared store does not answer, so the call is not made: repeat the request later"
                }
                _ => "the key of the call cannot be kept, so the call is not made",
            };
            ErrorData::internal_error(text, None)
        };
        let begun = calls.begin(&identity.holder, &key, &request).await.map_err(failed)?;
        let refused = |message: String| {
            let text = json!({ "error": message }).to_string();
            Ok(KeyLookup::Before(Box::new(CallToolResult::error(vec![ContentBlock::text(text)]))))
        };
        let begun = match begun {
            KeyState::Lost(call, _) if may_repeat(published, name) => {
                call.again().await.map_err(failed)?.map_or_else(once::still_runs, KeyState::New)
            }
            begun => begun,
        };
        match begun {
            KeyState::New(call) => Ok(KeyLookup::Made(call)),
            KeyState::Without(reason) => refused(reason),
            KeyState::Ended(result) => {
                repeated(result, published, identity).map(|result| KeyLookup::Before(Box::new(result)))
            }
            KeyState::Lost(_, begun) => refused(format!(
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
        published.session(&identity.holder).add_label(&label);
    }
    meta.insert(REPEATED.to_owned(), json!(true));
    Ok(result)
}

/// Returns the key of a request, from its metadata or its header.
///
/// # Errors
///
/// The key is malformed, or the two differ.
fn of(meta: &Map<String, Value>, parts: Option<&Parts>) -> Result<Option<String>, ErrorData> {
    let in_meta = match meta.get(META) {
        None => None,
        Some(Value::String(key)) => Some(key.as_str()),
        Some(_) => return Err(invalid(format!("`_meta`, `{META}`: expected a string"))),
    };
    let mut headers = parts.into_iter().flat_map(|parts| parts.headers.get_all(HEADER));
    let in_header = match (headers.next(), headers.next()) {
        (None, _) => None,
        (Some(_), Some(_)) => return Err(invalid(format!("the header `{HEADER}` is given twice"))),
        (Some(value), None) => match value.to_str() {
            // A string with or without its quotes.
            Ok(value) => Some(value.trim().trim_matches('"')),
            Err(_) => return Err(invalid(format!("`{HEADER}`: expected visible characters of ASCII"))),
        },
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
        let mut twice = header("a");
        twice.headers.append(HEADER, "a".parse().unwrap());
        assert!(of(&none, Some(&twice)).is_err_and(|error| error.message.contains("twice")));
        for wrong in [json!(1), json!(""), json!("a\n"), json!("x".repeat(MAX_KEY_LEN + 1))] {
            assert!(of(&meta(wrong.clone()), None).is_err(), "{wrong}");
        }
    }
}
