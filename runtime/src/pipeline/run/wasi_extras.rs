//! Host data for `wasi:config` and `wasi:keyvalue`: the settings of a tool, and its values' store if it is granted one.

use std::sync::Arc;

use serde_json::Value;

use crate::policy::real_path;
use crate::sandbox::{Program, Settings, WasiExtras};
use crate::store::keyvalue::Store;
use crate::tool::{Body, Tool};

use crate::pipeline::state::{CallScope, Execution, MAX_EXTRA_BYTES, Memory, Pipeline};

/// Maximum number of settings per tool.
const MAX_SETTINGS: usize = 1000;

/// Returns the data for a program that imports one of the interfaces; every other program gets none.
pub(super) fn wasi_extras(
    pipeline: &Pipeline,
    Execution { tool, prepared, .. }: &Execution<'_>,
    program: &Program,
    scope: &CallScope<'_>,
) -> WasiExtras {
    if !program.needs_extras {
        return WasiExtras::default();
    }
    let store = prepared.grant.rights().cache().map(|()| store(pipeline, tool, &program.digest, scope.memory));
    WasiExtras { settings: settings(&pipeline.contexts.config(&tool.name)), store: Some(store) }
}

/// Returns the store of a tool. The functions of one component share a store; every other tool has its own. In the
/// operator's folder the values of the operator's own tools survive a change of the program; the values of all others
/// belong to the digest of the program, and the values of a session's owner to that owner.
fn store(pipeline: &Pipeline, tool: &Tool, digest: &str, memory: &Memory) -> Store {
    let (kind, owner) = match &tool.body {
        Body::Typed(typed) => ("program", typed.program.to_string_lossy()),
        _ => ("tool", tool.name.as_str().into()),
    };
    let Some(stores) = &pipeline.keyvalue else { return memory.store([digest, kind, &*owner]) };
    let source = real_path(&tool.origin.path);
    let version = if tool.origin.trust.is_operators() { "" } else { digest };
    let source = source.to_string_lossy();
    let words = [kind, &*owner, &*source, version].into_iter();
    let words: Vec<&str> = words.chain(memory.owner().map(|owner| &**owner)).collect();
    stores.store(&words, memory.owner())
}

/// Returns settings as texts: a string as it is, every other value as its JSON.
fn settings(config: &Value) -> Settings {
    let table = match config {
        Value::Null => return Ok(Arc::default()),
        Value::Object(table) => table,
        _ => return Err("the tool's settings are not a table".to_owned()),
    };
    if table.len() > MAX_SETTINGS {
        return Err(format!("the tool has {} settings, more than the {MAX_SETTINGS} allowed", table.len()));
    }
    let text = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match value.len() > MAX_EXTRA_BYTES {
            true => {
                let bytes = value.len();
                Err(format!("the setting `{key}` has {bytes} bytes, more than the {MAX_EXTRA_BYTES} allowed"))
            }
            false => Ok((key.clone(), value)),
        }
    };
    table.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_texts_within_bounds() {
        let texts = settings(&json!({"a": "b", "n": 3, "deep": {"x": [true, null]}})).unwrap();
        let texts: Vec<_> = texts.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(texts, [("a", "b"), ("n", "3"), ("deep", r#"{"x":[true,null]}"#)]);
        assert!(settings(&Value::Null).unwrap().is_empty());
        assert!(settings(&json!([1])).unwrap_err().contains("not a table"));
        let many = |count: usize| Value::Object((0..count).map(|n| (n.to_string(), json!(n))).collect());
        assert_eq!(settings(&many(MAX_SETTINGS)).unwrap().len(), MAX_SETTINGS);
        assert!(settings(&many(MAX_SETTINGS + 1)).unwrap_err().contains("1001 settings"));
        assert!(settings(&json!({"a": "x".repeat(MAX_EXTRA_BYTES)})).is_ok());
        assert!(settings(&json!({"a": "x".repeat(MAX_EXTRA_BYTES + 1)})).unwrap_err().contains("`a` has 65537 bytes"));
    }
}
