//! Schemas of the Agent Tool standard, from outside the repository: `$TOOLCRIB_STANDARDS/agent-tool-0.2.0`, or the
//! folder `shared` beside the repository. Without either, the checks are skipped with a message.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;

const VERSION: &str = "agent-tool-0.2.0";
/// Names of the schemas by the kinds of our Agent Tool records: the arrays of an export, and the files of a run.
const KINDS: [(&str, &str); 15] = [
    ("declarations", "tool-declaration"),
    ("interfaces", "tool-interface"),
    ("execution_profiles", "execution-profile"),
    ("permission_profiles", "permission-profile"),
    ("scheduler_policies", "scheduler-policy"),
    ("deferred_tools", "deferred-tool"),
    ("surfaces", "tool-surface"),
    ("invocations", "invocation"),
    ("events", "event"),
    ("progress", "progress"),
    ("results", "result"),
    ("permission-decisions", "permission-decision"),
    ("input-mutations", "input-mutation"),
    ("hooks", "hook"),
    ("result-persistence", "result-persistence"),
];

/// Kinds of Agent Tool records that a run writes.
pub(crate) fn kinds_of_a_run() -> impl Iterator<Item = &'static str> {
    KINDS[7..].iter().map(|(kind, _)| *kind)
}

/// The standard, and the number of validated Agent Tool records.
pub(crate) struct Standard {
    schemas: BTreeMap<&'static str, Validator>,
    counts: BTreeMap<&'static str, (usize, usize)>,
    wrong: Vec<String>,
}

impl Standard {
    /// Finds the standard, if the machine has it.
    pub(crate) fn find() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let named = std::env::var_os("TOOLCRIB_STANDARDS").map(PathBuf::from);
        let places = named.into_iter().chain([root.join("../shared/standards")]);
        let Some(folder) = places.map(|place| place.join(VERSION)).find(|folder| folder.is_dir()) else {
            eprintln!("skipped: the schemas of the standard are not here; TOOLCRIB_STANDARDS names their folder");
            return None;
        };
        let schema = |(kind, name): (&'static str, &str)| {
            let text = fs::read_to_string(folder.join(format!("agenttool-{name}.schema.json"))).expect("a schema");
            let schema: Value = serde_json::from_str(&text).expect("JSON");
            (kind, jsonschema::validator_for(&schema).expect("a valid schema"))
        };
        let schemas = KINDS.into_iter().map(schema).collect();
        Some(Self { schemas, counts: BTreeMap::new(), wrong: Vec::new() })
    }

    /// Violations of the schema by an Agent Tool record.
    pub(crate) fn violations(&self, kind: &str, record: &Value) -> Vec<String> {
        let schema = &self.schemas[kind];
        let wrong = schema.iter_errors(record).map(|error| format!("{kind}: {error} at {}", error.instance_path()));
        wrong.collect()
    }

    /// Validates Agent Tool records of a kind against their schema.
    pub(crate) fn check(&mut self, kind: &str, records: &[Value]) {
        let (kind, _) = self.schemas.get_key_value(kind).expect("a known kind");
        let kind = *kind;
        for record in records {
            let wrong = self.violations(kind, record);
            let (all, failed) = self.counts.entry(kind).or_default();
            *all += 1;
            *failed += usize::from(!wrong.is_empty());
            self.wrong.extend(wrong);
        }
    }

    /// Prints the counts, and asserts that there were no violations.
    #[track_caller]
    pub(crate) fn settle(self, of: &str) {
        for (kind, (all, failed)) in &self.counts {
            eprintln!("{of}: {kind}: {all} records, {failed} against the schema");
        }
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}

#[test]
fn a_broken_record_is_found() {
    let Some(standard) = Standard::find() else { return };
    let result = serde_json::json!({
        "schema_version": "0.2.0", "result_id": "r", "invocation_id": "i", "status": "succeeded", "created_at": "now"
    });
    assert_eq!(standard.violations("results", &result), [""; 0]);
    for (field, value) in [("status", Value::from(1)), ("evidence_refs", Value::from("x")), ("error", Value::Null)] {
        let mut broken = result.clone();
        broken[field] = value;
        assert_eq!(standard.violations("results", &broken).len(), 1, "{field}");
    }
    let mut without = result;
    without.as_object_mut().unwrap().shift_remove("invocation_id");
    assert_eq!(standard.violations("results", &without).len(), 1);
    let progress = serde_json::json!({
        "schema_version": "0.2.0", "progress_id": "p", "invocation_id": "i", "sequence": 1, "status": "running",
        "timestamp": "now", "percent": 101
    });
    assert_eq!(standard.violations("progress", &progress).len(), 1);
}
