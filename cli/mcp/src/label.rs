//! Label of a call's arguments, as its client states it in the request's metadata: it can only add to what the host observes.

use rmcp::model::ErrorData;
use serde_json::{Map, Value};
use toolcrib::flow::Label;

use super::answer::LABEL;

/// Source of what a client states.
const CLIENT: &str = "client";

/// Returns the label of a request.
///
/// # Errors
///
/// The label is malformed: nobody knows what it should restrict.
pub(super) fn stated(meta: &Map<String, Value>) -> Result<Option<Label>, ErrorData> {
    let read = |value: &Value| Label::stated(value, CLIENT);
    let label = meta.get(LABEL).map(read).transpose();
    label.map_err(|error| ErrorData::invalid_params(format!("`_meta` has a malformed `{LABEL}`: {error}"), None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib::flow::Integrity;

    use super::*;

    #[test]
    fn a_malformed_label_is_an_error() {
        let of = |value: Value| stated(&Map::from_iter([(LABEL.to_owned(), value)]));
        let label = of(json!({"integrity": "untrusted"})).unwrap().unwrap();
        assert_eq!(label.integrity(), Integrity::Untrusted);
        assert!(of(json!({"integrity": "bad"})).is_err_and(|error| error.message.contains("toolcrib/label")));
        assert_eq!(stated(&Map::new()), Ok(None));
    }
}
