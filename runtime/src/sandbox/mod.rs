//! Guests in the engine. A program is compiled once; every call gets a fresh store with its limits and its grant, and the
//! store is dropped with the call. Only this module names the engine. It knows no dialect of a tool source.

mod address_space;
mod bindings;
mod cache;
mod call;
mod causes;
pub mod compiler;
mod descriptor_budget;
mod engine;
mod epoch;
mod gate;
mod guest_io;
mod imports;
pub mod platform;
mod program;
mod services;
mod state;
mod trap;
mod usage;
mod wasi;

#[cfg(test)]
pub(crate) use bindings::CodeFrame;
pub(crate) use bindings::{
    Answer, CodeCall, CodeCallResult, CodeCompletion, CodeFailure, CodeFailureKind, CodeForm, CodeLimits, CodeOutput,
    CodeProblem, CodeProgram, CodeTool, EntryPoint, ExecOptions, ExecOutput, FailedCall, FailedCallReason,
    GuestFailure, GuestFailureKind, GuestLink, GuestMedia, GuestNative, GuestPart, GuestPayload, Invocation,
    ModelAnswer, ModelQuestion, Opinion, Presentation, ScriptProblem, ScriptText,
};
pub(crate) use call::{CodeEnd, CodeInterpreter, CodeSession, Interpreter, ScriptCall, ScriptImage, ScriptSource};
pub(crate) use engine::{Instances, MAX_PROGRAMS};
pub(crate) use gate::EgressGate;
pub(crate) use guest_io::{GuestInput, GuestOutput};
pub(crate) use program::{Program, Sandbox};
pub(crate) use services::{ExecOutcome, HostServices, Registration};
pub(crate) use usage::{CallEffects, MAX_RECORDED, SentRequest, Usage, WaitingRequest, WaitingRequests};
pub(crate) use wasi::{Certificates, HttpClient, Settings, WasiExtras, certificates};
