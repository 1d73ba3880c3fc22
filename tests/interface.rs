//! How a tool behaves, as its source says it and its bytes prove it: what stands in an entry, in a record of its own, in
//! the imports of a program, and what `inspect` shows of them all.

mod entry;
mod facts;
mod hostile;
mod inspect;
mod record;

use serde_json::Value;
use toolcrib::Tool;
use toolcrib::tool::{Basis, Row};

use crate::crib::Crib;

/// What `validate` prints for a source, and its exit code.
fn validate(crib: &Crib, source: &str) -> (Option<i32>, String) {
    let ran = crib.run(&["validate", source]);
    (ran.code, ran.stdout + &ran.stderr)
}

/// The tools of a source.
fn load(crib: &Crib, source: &str) -> Vec<Tool> {
    toolcrib::source::load_usable(&crib.path(source)).unwrap_or_else(|error| panic!("{error}")).tools
}

/// A field of a tool's interface.
fn field(tool: &Tool, name: &str) -> (Value, Basis) {
    let row: Row = tool.interface.rows().into_iter().find(|row| row.field == name).expect("a field of this name");
    (row.value, row.basis)
}
