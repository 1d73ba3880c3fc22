//! EventKind a call gives to components that were written for other hosts: the settings of its tool, and the store in which the
//! tool keeps values, where it may keep any.

use std::sync::Arc;

use serde_json::Value;

use crate::keyvalue::Store;
use crate::policy::real_path;
use crate::sandbox::{Program, Provided, Settings};
use crate::tool::{Body, Tool};

use super::run::Work;
use super::{Context, Memory, Pipeline};

/// The most settings of one tool, and the most bytes of one value.
const MAX_SETTINGS: usize = 1000;
const MAX_SETTING_LEN: usize = 64 << 10;

impl Pipeline {
    /// EventKind a call finds whose program asks for it; every other pays for nothing.
    pub(super) fn provided(&self, work: &Work<'_>, program: &Program, context: &Context<'_>) -> Provided {
        if !program.asks_provided {
            return Provided::default();
        }
        let Work { tool, ready, .. } = work;
        let store = ready.grant.rights().cache().map(|()| self.store(tool, &program.digest, context.memory));
        Provided { settings: settings(&self.surroundings.config(&tool.name)), store: Some(store) }
    }

    /// Where a tool keeps values. The functions of a component are one program to its author, and share one store; else
    /// each tool has its own. In the operator's folder what a manifest of his own names is the same also when its program
    /// changes; of everything else the program's digest says whose the values are.
    fn store(&self, tool: &Tool, digest: &str, memory: &Memory) -> Store {
        let (of, who) = match &tool.body {
            Body::Typed(typed) => ("program", typed.program.to_string_lossy()),
            _ => ("tool", tool.name.as_str().into()),
        };
        let Some(folder) = &self.keyvalue else { return memory.store([digest, of, &*who]) };
        let source = real_path(&tool.origin.path);
        let whose = if tool.origin.is_operators() { "" } else { digest };
        folder.store(&[of, &*who, &source.to_string_lossy(), whose])
    }
}

/// Settings in the form of texts: a text as it is, everything else as its JSON.
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
        match value.len() > MAX_SETTING_LEN {
            true => {
                let bytes = value.len();
                Err(format!("the setting `{key}` has {bytes} bytes, more than the {MAX_SETTING_LEN} allowed"))
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
        let told = settings(&json!({"a": "b", "n": 3, "deep": {"x": [true, null]}})).unwrap();
        let told: Vec<_> = told.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(told, [("a", "b"), ("n", "3"), ("deep", r#"{"x":[true,null]}"#)]);
        assert!(settings(&Value::Null).unwrap().is_empty());
        assert!(settings(&json!([1])).unwrap_err().contains("no table"));
        let many = |count: usize| Value::Object((0..count).map(|n| (n.to_string(), json!(n))).collect());
        assert_eq!(settings(&many(MAX_SETTINGS)).unwrap().len(), MAX_SETTINGS);
        assert!(settings(&many(MAX_SETTINGS + 1)).unwrap_err().contains("1001 settings"));
        assert!(settings(&json!({"a": "x".repeat(MAX_SETTING_LEN)})).is_ok());
        assert!(settings(&json!({"a": "x".repeat(MAX_SETTING_LEN + 1)})).unwrap_err().contains("`a` has 65537 bytes"));
    }
}
