//! Run tools that nobody has to trust.
//!
//! Every tool is a WebAssembly component. Every call runs in a fresh sandbox with only what it was granted, under a
//! deadline that holds, and leaves exactly one record in the audit log.
//!
//! ```no_run
//! # async fn demo() -> Result<(), toolcrib::Error> {
//! use toolcrib::policy::Permission;
//! use toolcrib::{Audit, Policy, Runtime, ToolCall};
//!
//! let runtime = Runtime::builder(Audit::folder("./audit"))
//!     .source("tools.json")
//!     .policy(Policy::default().allow(Permission::Read("./data".into())))
//!     .build()?;
//! let result = runtime.call(ToolCall::new("call-1", "fs_read_file", r#"{"path":"notes.md"}"#)).await;
//! println!("{}", result.content());
//! # Ok(()) }
//! ```
//!
//! The modules stand in the order in which they may import one another: `error`, `store`, `tool`, `call`, `schema`,
//! `source`, `registry`, `policy`, `hook`, `delegate`, `model`, `observe`, `audit`, `sandbox`,
//! `pipeline`, `runtime`. A dialect is known in [`source`] alone, the engine in the private `sandbox` alone, and only
//! the private `pipeline` reaches the sandbox. Nothing here touches a terminal, the process's environment or a home
//! directory: an embedder passes in what may be used.

pub mod audit;
pub mod call;
pub mod delegate;
pub mod error;
pub mod hook;
pub mod model;
pub mod observe;
mod pipeline;
pub mod policy;
mod registry;
pub mod runtime;
mod sandbox;
mod schema;
pub mod source;
mod store;
pub mod tool;

pub use audit::Audit;
pub use call::{Availability, Receipt, ToolCall, ToolResult};
pub use delegate::Delegate;
pub use error::{Error, Outcome, Severity, ToolError};
pub use model::Model;
pub use pipeline::{Scheduler, Session, Step};
pub use policy::Policy;
pub use runtime::{Builder, Runtime, WeakRuntime};
pub use sandbox::compiler;
pub use store::keyvalue::KeyValue;
pub use store::results::Results;
pub use store::{owner_only, results};
pub use tool::Tool;
