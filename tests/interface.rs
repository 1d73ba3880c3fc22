//! Behaviour of a tool, as its source states it and its bytes prove it: fields of an entry, of an Agent Tool record,
//! imports of a program, and the output of `inspect`.

mod entry;
mod facts;
mod hostile;
mod inspect;
mod record;

use serde_json::Value;
use toolcrib::Tool;
use toolcrib::tool::{Basis, Row};

use crate::crib::Crib;

/// Output of `validate` for a source, and its exit code.
fn validate(crib: &Crib, source: &str) -> (Option<i32>, String) {
    let ran = crib.run(&["validate", source]);
    (ran.code, ran.stdout + &ran.stderr)
}

/// Tools of a source.
fn load(crib: &Crib, source: &str) -> Vec<Tool> {
    toolcrib::source::load_usable(&crib.path(source)).unwrap_or_else(|error| panic!("{error}")).tools
}

/// Field of a tool's interface.
fn field(tool: &Tool, name: &str) -> (Value, Basis) {
    let row: Row = tool.interface.rows().into_iter().find(|row| row.field == name).expect("a field of this name");
    (row.value, row.basis)
}
