//! The functions that a component exports, with their WIT types, docs and names as tools.

mod docs;
mod naming;
mod read;
mod types;
mod wit;

pub use naming::{Names, names};
pub use read::{Exported, read};
pub use types::{Case, Cases, Field, Function, Integer, Record, Type};
pub use wit::documented;

use crate::externs::Externs;

/// Returns `true` if an export of this name belongs to a contract with a host and not to the component itself.
pub fn is_contract(name: &str) -> bool {
    name.starts_with("wasi:") || name.starts_with("toolcrib:")
}

/// Returns `true` if a program exports anything of its own.
pub fn has_own_exports(externs: &Externs) -> bool {
    externs.exports.iter().any(|name| !is_contract(name))
}
