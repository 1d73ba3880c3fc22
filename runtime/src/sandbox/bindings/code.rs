//! Types of the package `toolcrib:code`, under the names that the host uses.

use wasmtime::component::{ComponentType, Lower};

pub(crate) use super::generated::code::toolcrib::code::types::{
    Call as CodeCall, Completion as CodeCompletion, Failure as CodeFailure, FailureKind as CodeFailureKind,
    Form as CodeForm, Limits as CodeLimits, Output as CodeOutput, Problem as CodeProblem, Program as CodeProgram,
    Reason as FailedCallReason, Step as CodeStep, Tool as CodeTool,
};

#[cfg(test)]
pub(crate) use super::generated::code::toolcrib::code::types::Frame as CodeFrame;

/// Result of a call for its program.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct CodeCallResult {
    /// Identifier of the call.
    pub(crate) id: u32,
    /// JSON text of the result, or the failure.
    pub(crate) outcome: Result<String, FailedCall>,
}

/// Failure of a program's call.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct FailedCall {
    /// Reason.
    pub(crate) reason: FailedCallReason,
    /// Message for the program.
    pub(crate) message: String,
}

/// Interface of calls that an interpreter waits for.
pub(in crate::sandbox) const CODE_CALLS: &str = "toolcrib:code/calls@0.1.0";
/// Interface that an interpreter of programs exports.
pub(in crate::sandbox) const CODE_INTERPRETER: &str = "toolcrib:code/interpreter@0.1.0";
