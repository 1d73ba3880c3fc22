//! Server of the Model Context Protocol: the tools of a runtime for other agents, in both revisions of the protocol, over
//! standard streams and HTTP. The library of the protocol decides the revision of each request by its shape; nothing of the
//! protocol is in the runtime.

mod access;
mod answer;
mod call;
mod call_threads;
mod caller;
mod catalog;
mod consent;
mod conversations;
mod handler;
mod http;
mod media_ranges;
mod message;
mod metrics;
mod progress;
mod publication;
mod refusal;
mod reload;
mod search;
mod state;
mod stdio;
mod streams;
mod tokens;
mod tool_calls;
mod trace;
mod traffic;
mod wire;

pub(crate) use access::{Access, Limits};
pub(crate) use catalog::names_for_clients;
pub(crate) use consent::AgentApprover;
pub(crate) use handler::Handler;
pub(crate) use http::{Endpoint, serve as serve_http};
pub(crate) use progress::ProgressListeners;
pub(crate) use publication::{Publication, Published};
pub(crate) use reload::{WatchedSources, watch};
pub(crate) use state::Seal;
pub(crate) use stdio::serve as serve_stdio;
pub(crate) use tokens::{TokenRecord, Tokens};
