//! Tool definitions in the forms of other systems, one file per form. A conversion is pure: it reads a tool and returns a
//! value. Everything that a form rewrites or cannot state is a note, except keywords that no model needs; a tool that a form
//! cannot state at all is an error.

pub mod anthropic;
mod brief;
pub mod gemini;
mod limits;
pub mod mcp;
mod merge;
mod names;
mod notes;
pub mod openai;
mod reference;
mod strict;

use std::fmt;

pub use names::{NameRule, Names};

/// Reason why a form cannot state a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(String);

impl Unsupported {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

/// Definition of a tool in another form.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Definition as that system reads it.
    pub value: serde_json::Value,
    /// Differences from the tool's own definition, one sentence each.
    pub notes: Vec<String>,
}
