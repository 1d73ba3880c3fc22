//! Types from the WIT packages in `wit/`, and the names of exports that the host calls. Parameters of exports are
//! borrowed, so that a call copies no payload. Values from a guest are unchecked.

mod code;
mod generated;
mod script;
mod tool;

#[cfg(test)]
pub(crate) use code::CodeFrame;
pub(super) use code::{CODE_CALLS, CODE_INTERPRETER};
pub(crate) use code::{
    CodeCall, CodeCallResult, CodeCompletion, CodeFailure, CodeFailureKind, CodeForm, CodeLimits, CodeOutput,
    CodeProblem, CodeProgram, CodeStep, CodeTool, FailedCall, FailedCallReason,
};
pub(super) use script::INTERPRETER;
pub(crate) use script::{EntryPoint, ExecOptions, ExecOutput, ScriptProblem, ScriptText};
pub(crate) use tool::{
    Answer, GuestFailure, GuestFailureKind, GuestLink, GuestMedia, GuestNative, GuestPart, GuestPayload, Invocation,
    ModelAnswer, ModelQuestion, Opinion, Presentation,
};
pub(super) use tool::{CALL, Exports, Level, check_export};
