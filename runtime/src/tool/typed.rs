//! A tool that is an exported function of a component.

use std::path::PathBuf;

pub use toolcrib_component::functions::{Case, Cases, Field, Function, Integer, Record, Type};

/// Function of a component that a tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The component on the host.
    pub program: PathBuf,
    /// The function.
    pub function: Function,
}
