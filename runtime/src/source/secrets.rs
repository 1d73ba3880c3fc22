//! Secrets that a tool requests:
//! `[{"name": "github", "host": "api.github.com", "header": "Authorization", "format": "Bearer {}"}]`, with `query` instead
//! of `header` for a query parameter. A source never holds the value of a secret.

use serde_json::{Map, Value};

use crate::tool::{Placement, SECRET_PLACEHOLDER, SecretHostError, SecretRequest, is_secret_name};

use super::shape::{kind, members};

/// Name of the field in messages.
const FIELD: &str = "capabilities.secrets";
const FIELDS: [&str; 5] = ["name", "host", "header", "format", "query"];
/// Maximum number of secrets per tool.
const MAX_SECRETS: usize = 16;

/// Reads `capabilities.secrets`.
///
/// # Errors
///
/// The first fault, with its position in the list.
pub(super) fn read(stated: Option<Value>) -> Result<Vec<SecretRequest>, String> {
    let items = match stated {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(format!("{FIELD} must be an array of objects, found {}", kind(&other))),
    };
    if items.len() > MAX_SECRETS {
        return Err(format!("{FIELD}: {} secrets, more than the {MAX_SECRETS} allowed", items.len()));
    }
    let mut requests: Vec<SecretRequest> = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let place = format!("{FIELD}[{index}]");
        let new = request(&place, members(&place, item)?)?;
        if let Some(other) = requests.iter().find(|other| shares_place(other, &new)) {
            let (host, placement) = (&new.host, &new.placement);
            return Err(format!(
                "{place}: `{}` is in the {placement} of {host} already; name one of the two",
                other.name
            ));
        }
        requests.push(new);
    }
    Ok(requests)
}

fn request(place: &str, mut fields: Map<String, Value>) -> Result<SecretRequest, String> {
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("{place}: unknown field `{unknown}`, expected one of `{}`", FIELDS.join("`, `")));
    }
    let mut text = |field: &str| match fields.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{place}.{field} must be a string, found {}", kind(&other))),
    };
    let name = text("name")?.ok_or_else(|| format!("{place}.name is required: the secret's name"))?;
    if !is_secret_name(&name) {
        return Err(format!("{place}.name: {name:?} must match [a-z0-9][a-z0-9_-]*, at most 64 characters"));
    }
    let host = text("host")?.ok_or_else(|| format!("{place}.host is required: the one host that gets the secret"))?;
    let host = host.parse().map_err(|wrong: SecretHostError| format!("{place}.host: {wrong}"))?;
    let placement = match (text("header")?, text("query")?, text("format")?) {
        (Some(header), None, format) => Placement::header(&header, format.as_deref().unwrap_or(SECRET_PLACEHOLDER))
            .map_err(|error| error.to_string()),
        (None, Some(query), None) => Placement::query(&query).map_err(|error| error.to_string()),
        (None, Some(_), Some(_)) => {
            Err("`format` applies only to a header; the value of a query parameter is the secret itself".into())
        }
        _ => Err("name either a `header` or a `query` parameter, in which the secret is sent".into()),
    };
    Ok(SecretRequest { name, host, placement: placement.map_err(|wrong| format!("{place}: {wrong}"))? })
}

/// Returns `true` if both secrets would be written to the same part of a request.
fn shares_place(one: &SecretRequest, other: &SecretRequest) -> bool {
    one.host == other.host && one.placement.shares_place(&other.placement)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_asked_for_with_its_one_host_and_place() {
        let asked = read(Some(json!([
            {"name": "github", "host": "api.github.com", "header": "Authorization", "format": "Bearer {}"},
            {"name": "maps", "host": "http://127.0.0.1:8080", "query": "key"},
        ])))
        .unwrap();
        assert_eq!(asked[0].capability(), "secret:github@api.github.com#header:authorization");
        assert_eq!(asked[1].capability(), "secret:maps@http://127.0.0.1:8080#query:key");
        assert_eq!(asked[0].placement, Placement::header("authorization", "Bearer {}").unwrap());
        assert_eq!(asked[1].placement, Placement::query("key").unwrap());
        assert_eq!(read(None), Ok(Vec::new()));
    }

    #[test]
    fn a_slip_names_its_place() {
        let of = |item: Value| read(Some(json!([item]))).unwrap_err();
        for (item, expected) in [
            (json!("github"), "capabilities.secrets[0] must be an object, found a string"),
            (json!({"host": "a.b"}), "capabilities.secrets[0].name is required"),
            (json!({"name": "G", "host": "a.b"}), "must match [a-z0-9][a-z0-9_-]*"),
            (json!({"name": "g"}), "capabilities.secrets[0].host is required"),
            (json!({"name": "g", "host": "*.b", "query": "k"}), "\"*.b\" is not a valid host for a secret"),
            (json!({"name": "g", "host": "http://a.b", "query": "k"}), "without TLS it could be read on the way"),
            (json!({"name": "g", "host": "a.b"}), "name either a `header` or a `query`"),
            (json!({"name": "g", "host": "a.b", "query": "k", "header": "h"}), "name either a `header` or a `query`"),
            (json!({"name": "g", "host": "a.b", "query": "k", "format": "{}"}), "`format` applies only to a header"),
            (json!({"name": "g", "host": "a.b", "header": "Host"}), "is set by the host and cannot carry a secret"),
            (json!({"name": "g", "host": "a.b", "query": "k", "value": "x"}), "unknown field `value`"),
        ] {
            let error = of(item);
            assert!(error.contains(expected), "{error}");
        }
        let twice = json!([{"name": "a", "host": "a.b", "header": "X"}, {"name": "b", "host": "a.b", "header": "x"}]);
        assert!(read(Some(twice)).unwrap_err().contains("`a` is in the header x of a.b already"));
        assert!(read(Some(json!({}))).unwrap_err().contains("must be an array of objects, found an object"));
    }
}
