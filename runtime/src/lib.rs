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
//! # A tour
//!
//! | question | answer |
//! |---|---|
//! | Which tools are there? | [`Builder::source`] reads a `tools.json`, Agent Tool definitions, Markdown files, components or a folder of them; [`source::check`] lists every problem of one; [`Runtime::tools`] lists the loaded [`Tool`]s. |
//! | What may they use? | A [`Policy`] of [permissions](policy::Permission) and [rules](policy::Rule). [`Runtime::grants`] shows what each tool got; a [`Denial`](call::Denial) names the flag that would allow it. |
//! | Where did it come from? | Each [`Receipt`] has a [label](flow::Label) of all that the host saw the call depend on; [rules](flow) about flows deny or ask where it may not go. |
//! | Who is asked? | An [`Approver`](policy::Approver), if a rule asks; [`Approvals`](policy::Approvals) stores permanent answers. |
//! | How is a call made? | [`Runtime::call`] with a [`ToolCall`] gives a [`ToolResult`]: text for the model, and a [`Receipt`] with the [`Outcome`], times, bytes and denials. [`Session`] holds one conversation, [`Step`] the calls of one turn. |
//! | How does a model compute? | By programs that call the tools: [`Builder::code_interpreter`] and [`Builder::code_mode`]. A [`stub`] describes the tools to them. |
//! | What stops it? | [`Limits`](tool::Limits) of the tool within the operator's limits: [`Builder::limits`], [`Builder::ceiling`]. |
//! | Who sees it? | An [`Audit`] log with one chained record for each call ([`audit::verify`]), and [observers](observe::Observer) with its events. |
//! | Who may change it? | [Hooks](hook::Hook): they block calls, change arguments and replace results. |
//! | Where do large results go? | Into a store of [`Results`]; the model gets a preview and a reference. |
//! | Who approves what was written? | With a [`Stage`](staging::Stage), tools write into an overlay over their folders: [`Builder::stage`]. Its changes are listed, compared, dropped one by one or committed together. |
//! | Can it be taken back? | With a [`Record`](staging::Record), each change is noted with what was there before: [`Builder::record`]. [`History::undo`](staging::History::undo) plans the way back. |
//! | Where do secrets come from? | From a [`SecretStore`](policy::SecretStore). Guests never see the values: they are put into requests to the hosts they are for. |
//! | Where do remote tools run? | On their servers. An embedder's [`RemoteTools`](remote::RemoteTools) speaks the protocol, through a [`Gate`](remote::Gate) with the grant of the call: [`Builder::remote`]. |
//! | Can a call run on another machine? | An embedder's [`Workers`](worker::Workers) run the programs in place of this process; all other stages stay here: [`Builder::workers`]. |
//! | Where are programs compiled? | In this process, or in one that a [`Compiler`](compiler::Compiler) can stop. Compiled code stays in a [`Cache`](cache::Cache) of bounded size. |
//!
//! Four programs show more: `embed`, `approver`, `hook` and `observer` in the folder `examples`.
//!
//! # What the library does not do
//!
//! It touches no terminal, no environment variable and no home folder, and starts no process: the program that embeds it
//! passes in everything that may be used.
//!
//! # Order of the modules
//!
//! Each module imports only from those before it: `error`, `store`, `tool`, `flow`, `call`, `schema`, `stub`, `source`, `registry`, `policy`,
//! `hook`, `delegate`, `model`, `remote`, `worker`, `observe`, `audit`, `sandbox`, `pipeline`, `runtime`. Only [`source`] knows the formats of
//! sources, only the private `sandbox` the engine, and only the private `pipeline` uses the sandbox.

pub mod audit;
pub mod call;
pub mod delegate;
pub mod error;
mod figures;
pub mod flow;
pub mod hook;
pub mod model;
pub mod observe;
mod pipeline;
pub mod policy;
mod registry;
pub mod remote;
pub mod runtime;
mod sandbox;
mod schema;
pub mod source;
mod store;
pub mod stub;
pub mod tool;
pub mod worker;

pub use audit::Audit;
pub use call::{Availability, Receipt, ToolCall, ToolResult};
pub use delegate::Delegate;
pub use error::{Error, HandlerError, Outcome, Severity, ToolError};
pub use figures::ProcessFigures;
pub use model::Model;
pub use pipeline::{CallInterrupt, Scheduler, Session, Step};
pub use policy::Policy;
pub use registry::check_names;
pub use runtime::{Builder, HostGate, Runtime, WeakRuntime};
pub use sandbox::{compiler, platform};
pub use store::keyvalue::KeyValue;
pub use store::results::Results;
pub use store::{
    EntryGroup, ExpectedVersion, ListFile, SharedEntries, SharedValue, cache, owner_only, programs, results,
};
pub use tool::Tool;
pub use toolcrib_staging as staging;
