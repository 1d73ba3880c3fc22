//! The kind of a program: how the host calls it.

use serde::Serialize;

use crate::externs::Externs;
use crate::form::Form;
use crate::functions;

/// Prefix of a rich tool's export.
pub const CALL: &str = "toolcrib:tool/call@1.";
/// Prefix of a command's export.
pub const RUN: &str = "wasi:cli/run@0.2.";
/// Prefix of an interpreter's export.
pub const INTERPRETER: &str = "toolcrib:code/interpreter@";

/// Kind of a program, derived from its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgramKind {
    /// A component with the contract of rich tools.
    Rich,
    /// A component that runs programs that call tools.
    Interpreter,
    /// A component that runs as a command.
    Command,
    /// A component that exports functions of its own.
    Functions,
    /// Any other component.
    Component,
    /// A core module, for WASI preview 1.
    Module,
}

impl ProgramKind {
    /// Returns the kind of a program. Without `externs`, a component is [`ProgramKind::Component`].
    pub fn of(form: Form, externs: Option<&Externs>) -> Self {
        let exports = |prefix| externs.is_some_and(|it| it.exports.iter().any(|name| name.starts_with(prefix)));
        match form {
            Form::Module => Self::Module,
            Form::Component if exports(CALL) => Self::Rich,
            Form::Component if exports(INTERPRETER) => Self::Interpreter,
            Form::Component if exports(RUN) => Self::Command,
            Form::Component if externs.is_some_and(functions::has_own_exports) => Self::Functions,
            Form::Component => Self::Component,
        }
    }
}
