//! Stages of a call before and after its tool runs. Each stage is one function; the order of all stages is in
//! `Pipeline::call`.

mod accept;
mod arguments;
mod ask;
mod authorize;
mod commit;
mod content;
mod effects;
mod flow;
mod preview;
mod references;
mod resolve;
mod result;
mod schedule;
mod secrets;
mod settle;
mod validate;
mod withhold;

pub(crate) use accept::accept;
pub(crate) use arguments::log_arguments;
pub(crate) use authorize::{AuthorizationRequest, authorize};
pub(crate) use content::{ModelContent, display, model_content, part, tool_error};
pub(crate) use effects::join_effects;
pub(crate) use flow::{begin_flow, begin_flow_with, end_flow};
pub(crate) use preview::preview;
pub(crate) use references::{may_refer, put_results};
pub(crate) use resolve::resolve;
pub(crate) use result::{FRAME, map, quoted, store};
pub(crate) use schedule::{Scheduled, schedule};
pub(crate) use secrets::{credentials, redact, renewed};
pub(crate) use settle::settle;
pub(crate) use validate::{revalidate, validate};
pub(crate) use withhold::disclose;
