//! Acceptance scenarios of the Agent Tool standard, version 0.2.0, in its order: one test per scenario, through the
//! library and its Agent Tool records.

mod approving;
mod finding;
mod ordering;
mod tracing;

use serde_json::{Value, json};

use crate::crib::Crib;

/// Creates a crib with tools of these names and guests, each with these further fields.
fn crib(tools: &[(&str, &str, Value)]) -> Crib {
    let crib = Crib::new();
    let entries = tools.iter().map(|(name, guest, more)| {
        let mut entry = crib.entry(guest);
        entry["name"] = json!(name);
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    });
    crib.manifest(&json!({ "tools": entries.collect::<Vec<_>>() }));
    crib
}
