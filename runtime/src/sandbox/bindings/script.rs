//! Types of the package `toolcrib:script`, as the engine lifts and lowers them.

use wasmtime::component::{ComponentType, Lift, Lower};

use crate::tool::Place;

/// Interface that the interpreter exports.
pub(in crate::sandbox) const INTERPRETER: &str = "toolcrib:script/interpreter@0.1.0";

/// Script, as the interpreter receives it.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ScriptText<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
}

/// Function that a script has to define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum EntryPoint {
    #[component(name = "run")]
    Run,
    #[component(name = "handle")]
    Handle,
}

/// Problem of a script.
#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ScriptProblem {
    line: u32,
    column: u32,
    pub(crate) message: String,
}

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

/// Options of a command that a script runs.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ExecOptions {
    #[component(name = "timeout-ms")]
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) folder: Option<String>,
    pub(crate) stdin: String,
}

/// Output of a command that a script ran.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ExecOutput {
    #[component(name = "exit-code")]
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    #[component(name = "duration-ms")]
    pub(crate) duration_ms: u64,
}
