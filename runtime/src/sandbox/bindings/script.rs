//! Types of the package `toolcrib:script`, under the names that the host uses.

use crate::tool::Place;

pub(crate) use super::generated::script::exports::toolcrib::script::interpreter::{
    Entry as EntryPoint, Problem as ScriptProblem, Script as ScriptText,
};
pub(crate) use super::generated::script::toolcrib::script::exec::{Finished as ExecOutput, Options as ExecOptions};

/// Interface that the interpreter exports.
pub(in crate::sandbox) const INTERPRETER: &str = "toolcrib:script/interpreter@0.1.0";

impl ScriptProblem {
    /// Creates a problem without a position.
    pub(crate) fn anywhere(message: String) -> Self {
        Self { line: 0, column: 0, message }
    }

    /// Returns the position in the script, if known.
    pub(crate) fn place(&self) -> Option<Place> {
        (self.line > 0 && self.column > 0).then_some(Place { line: self.line, column: self.column })
    }
}
