//! The acceptance scenarios of the Agent Tool standard, version 0.2.0, in its order: one test a scenario, through the
//! library and the records that it leaves.

mod approving;
mod finding;
mod ordering;
mod tracing;

use serde_json::{Value, json};

use crate::crib::Crib;

/// A crib whose tools run the guests of these names, each with these further fields.
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
