//! Approval prompts on the terminal, permanent approvals, and hints about denied calls. Rules and tool definitions decide
//! which calls need approval; this module decides nothing.

mod denial;
mod deny_flags;
mod keyboard;
mod person;
mod refusal;
mod sheet;

pub(crate) use denial::denial_hints;
pub(crate) use deny_flags::DenyFlags;
pub(crate) use person::TerminalApprover;
pub(crate) use refusal::hint;
