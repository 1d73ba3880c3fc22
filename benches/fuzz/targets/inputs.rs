//! Targets for arguments: any arguments against any schema, and any arguments against a schema that marks secrets, which no
//! record may contain.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::{Outcome, Runtime};
use toolcrib_agent_tool::AgentToolRecorder;

use super::{Act, call, manifest_of, parts};

/// Canary value in the place of a secret.
const CANARY: &str = "c4n4ry";

/// Target for schemas. Input: an entry of a manifest (its schema, rules and limits), a NUL, and arguments.
pub(super) fn schema(folder: &Path) -> Act {
    let (folder, threads) = (folder.to_path_buf(), super::threads());
    Box::new(move |input| {
        let (entry, arguments) = parts(input);
        let (Ok(entry @ Value::Object(_)), Ok(arguments)) =
            (serde_json::from_slice(entry), std::str::from_utf8(arguments))
        else {
            return;
        };
        let path = manifest_of(&folder, entry);
        let built = Runtime::builder(toolcrib::Audit::off())
            .source(&path)
            .compile_cache(folder.join("cache"))
            .concurrency(1)
            .build();
        let Ok(runtime) = built else { return };
        let result = call(&threads, &runtime, "t", arguments);
        if result.receipt.outcome == Outcome::BadArguments {
            assert_eq!(result.receipt.exit, None, "it was started on bad arguments");
        }
    })
}

/// Target for arguments of one tool. Checks its answer and its records.
pub(super) fn arguments(folder: &Path) -> Act {
    let secret = json!({"type": "string", "writeOnly": true});
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 64, "pattern": "^[^~]*$"},
            "count": {"type": "integer", "minimum": -5, "maximum": 9007199254740993_i64},
            "password": {"type": "string", "format": "password"},
            "login": {"type": "object", "properties": {"token": secret, "user": {"type": "string"}}},
            "keys": {"type": "array", "items": {"sensitive": true}, "maxItems": 4},
            "other": {"$ref": "#/$defs/any"},
        },
        "$defs": {"any": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"$ref": "#/$defs/any"}}]}},
        "additionalProperties": false
    });
    let rule = json!({"field": "/count", "is": "<=", "than": 1000});
    let path = manifest_of(folder, json!({"schema": schema, "interface": {"value_validation": [rule]}}));
    let (kept, threads) = (folder.join("records"), super::threads());
    let records = Arc::new(AgentToolRecorder::folder(&kept).expect("records"));
    let builder = Runtime::builder(toolcrib::Audit::off()).source(&path).observer(records.clone()).concurrency(1);
    let runtime = builder.build().expect("a runtime");
    Box::new(move |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let result = call(&threads, &runtime, "t", text);
        let value = serde_json::from_str::<Value>(text);
        if result.receipt.outcome == Outcome::Ok {
            let sound = value.as_ref().is_ok_and(Value::is_object) || text.trim().is_empty();
            assert!(sound, "it ran without an object: {text:?}");
        }
        records.finish().expect("the records are written");
        let secret = value.is_ok_and(|value| is_secret(&value));
        for entry in fs::read_dir(&kept).expect("a folder") {
            let path = entry.expect("a file").path();
            let told = fs::read_to_string(&path).expect("text");
            assert!(told.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{told}");
            assert!(!secret || !told.contains(CANARY), "a secret is in {}: {told}", path.display());
            let file = fs::OpenOptions::new().write(true).open(&path).expect("a file of records");
            file.set_len(0).expect("it can be emptied");
        }
    })
}

/// Returns `true` if the canary occurs only in values that the schema marks as secret.
fn is_secret(arguments: &Value) -> bool {
    let mut public = arguments.clone();
    let marked =
        [public.pointer_mut("/password").map(Value::take), public.pointer_mut("/login/token").map(Value::take)];
    let keys = public.pointer_mut("/keys").map(Value::take);
    let shows = |value: &Option<Value>| value.as_ref().is_some_and(|value| value.to_string().contains(CANARY));
    (marked.iter().any(shows) || shows(&keys)) && !public.to_string().contains(CANARY)
}
