//! Types of the WIT packages in `wit/`, as the engine lifts and lowers them. They are written by hand: parameters are
//! borrowed, so that a call copies no payload, and one type serves as result and as parameter. Values from a guest are
//! unchecked.

mod script;
mod tool;

pub(super) use script::INTERPRETER;
pub(crate) use script::{EntryPoint, ExecOptions, ExecOutput, ScriptProblem, ScriptText};
pub(crate) use tool::{
    Answer, GuestFailure, GuestFailureKind, GuestLink, GuestMedia, GuestNative, GuestPart, GuestPayload, Invocation,
    ModelAnswer, ModelQuestion, Opinion, Presentation,
};
pub(super) use tool::{CALL, Exports, Level, check_export};
