//! Keys of the results that a program got. A program that looked up a missing key is shown them, so that its model need not guess
//! again.

use serde_json::{Map, Value, json};
use toolcrib_foundation::text::truncate;

/// Maximum number of tools whose first result is read.
const MAX_TOOLS: usize = 4;
/// Maximum bytes of a result that is read.
const MAX_RESULT: usize = 64 << 10;
/// Maximum keys of an object.
const MAX_KEYS: usize = 20;
/// Maximum number of lists in a result whose first entry is read.
const MAX_LISTS: usize = 3;
/// Maximum characters of a key.
const MAX_KEY: usize = 60;

/// Keys in the first result from each tool, for the first tools.
#[derive(Debug, Default)]
pub(super) struct ResultKeys(Map<String, Value>);

impl ResultKeys {
    /// Reads the keys of a result, a JSON line.
    pub(super) fn add(&mut self, tool: &str, line: &str) {
        let tool = truncate(tool, MAX_KEY);
        if self.0.len() == MAX_TOOLS || line.len() > MAX_RESULT || self.0.contains_key(&tool) {
            return;
        }
        let Ok(result) = serde_json::from_str::<Value>(line) else { return };
        let (mut keys, mut lists) = (Vec::new(), 0);
        match &result {
            Value::Object(object) => {
                keys.extend(object.keys().take(MAX_KEYS).map(|key| truncate(key, MAX_KEY)));
                for (key, list) in object {
                    if let Some(first) = first_object(list).filter(|_| lists < MAX_LISTS) {
                        lists += 1;
                        let nested = first.keys().take(MAX_KEYS);
                        keys.extend(
                            nested.map(|nested| format!("{}[0].{}", truncate(key, MAX_KEY), truncate(nested, MAX_KEY))),
                        );
                    }
                }
            }
            list => {
                let first = first_object(list).into_iter().flat_map(Map::keys).take(MAX_KEYS);
                keys.extend(first.map(|key| format!("[0].{}", truncate(key, MAX_KEY))));
            }
        }
        if !keys.is_empty() {
            self.0.insert(tool, json!(keys));
        }
    }

    /// Returns the keys by tool; `None` if no result has any.
    pub(super) fn shown(&self) -> Option<Value> {
        (!self.0.is_empty()).then(|| Value::Object(self.0.clone()))
    }
}

/// Returns the first entry of a list, if it is an object.
fn first_object(list: &Value) -> Option<&Map<String, Value>> {
    list.as_array()?.first()?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_first_results_are_read_within_limits() {
        let mut keys = ResultKeys::default();
        assert_eq!(keys.shown(), None);
        keys.add("list", r#"{"path":".","entries":[{"name":"a","size":1},{"other":2}]}"#);
        keys.add("list", r#"{"later":1}"#);
        keys.add("rows", r#"[{"id":1}]"#);
        keys.add("text", r#""a""#);
        let read = keys.shown().unwrap();
        let mut listed: Vec<_> = read["list"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        listed.sort_unstable();
        assert_eq!(listed, ["entries", "entries[0].name", "entries[0].size", "path"]);
        assert_eq!((&read["rows"], read.get("text")), (&json!(["[0].id"]), None));
        let many: Map<_, _> = (0..1000).map(|n| (format!("{n:0>100}"), json!([{ "x".repeat(100): n }]))).collect();
        keys.add("many", &Value::Object(many).to_string());
        keys.add("large", &json!({ "a": "x".repeat(MAX_RESULT) }).to_string());
        (0..10).for_each(|n| keys.add(&format!("t{n}"), r#"{"a":1}"#));
        let read = keys.shown().unwrap();
        assert_eq!((read.as_object().unwrap().len(), read.get("large")), (MAX_TOOLS, None));
        // This result is too long for its keys to be read.
        assert_eq!(read.get("many"), None);
        let mut keys = ResultKeys::default();
        let many: Map<_, _> = (0..100).map(|n| (format!("{n:0>100}"), json!([{ "x".repeat(100): n }]))).collect();
        keys.add("many", &Value::Object(many).to_string());
        let read = keys.shown().unwrap();
        let read = read["many"].as_array().unwrap();
        assert_eq!(read.len(), MAX_KEYS + MAX_LISTS);
        assert!(read.iter().all(|key| key.as_str().unwrap().chars().count() <= 2 * MAX_KEY + 4), "{read:?}");
    }
}
