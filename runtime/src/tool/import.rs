//! What a program imports: what is not here it cannot do.

use serde::Serialize;

/// Something that a program imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// The interface as the program names it, such as `wasi:filesystem/types@0.2.6`, or the module of a core module.
    pub from: String,
    /// What it uses of it, in the order of the program.
    pub functions: Vec<String>,
}
