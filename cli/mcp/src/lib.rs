//! Server of the Model Context Protocol: the tools of a runtime for other agents, in both protocol revisions, over
//! standard streams and HTTP. The library of the protocol decides the revision of each request by its shape; nothing of
//! the protocol is in the runtime. `examples/serve.rs` embeds the server.

mod access;
mod answer;
mod call;
mod call_threads;
mod caller;
mod catalog;
mod certificate;
mod charge;
pub mod client;
pub mod client_config;
mod consent;
mod conversations;
mod dialogue;
mod handler;
mod http;
mod label;
mod media_ranges;
mod message;
mod metrics;
mod paused;
mod pausing;
mod program_calls;
mod progress;
mod publication;
mod quotas;
mod refusal;
mod reload;
mod report;
mod running;
mod search;
mod state;
mod stdio;
mod streams;
mod tokens;
mod tool_calls;
mod trace;
mod traffic;
mod wire;

pub use access::{Access, Limits, TokenScope};
pub use catalog::names_for_clients;
pub use certificate::Certificate;
pub use consent::AgentApprover;
pub use handler::Handler;
pub use http::{Endpoint, serve as serve_http};
pub use progress::ProgressListeners;
pub use publication::{Publication, Published};
pub use quotas::QuotaLimits;
pub use reload::{WatchedSources, watch};
pub use state::Seal;
pub use stdio::serve as serve_stdio;
pub use tokens::{TokenRecord, TokenRights, Tokens};
