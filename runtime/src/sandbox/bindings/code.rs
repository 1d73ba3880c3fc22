//! Types of the package `toolcrib:code`, under the names that the host uses.

pub(crate) use super::generated::code::toolcrib::code::types::{
    Call as CodeCall, CallFailure as FailedCall, CallResult as CodeCallResult, Completion as CodeCompletion,
    Failure as CodeFailure, FailureKind as CodeFailureKind, Form as CodeForm, Limits as CodeLimits,
    Output as CodeOutput, Problem as CodeProblem, Program as CodeProgram, Reason as FailedCallReason, Step as CodeStep,
    Tool as CodeTool,
};

#[cfg(test)]
pub(crate) use super::generated::code::toolcrib::code::types::Frame as CodeFrame;

/// Interface that an interpreter of programs exports.
pub(in crate::sandbox) const CODE_INTERPRETER: &str = "toolcrib:code/interpreter@0.1.0";
