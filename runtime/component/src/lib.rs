//! Facts about a WebAssembly program from its bytes alone. Nothing is compiled, instantiated or run, and this crate depends on
//! no engine.
//!
//! | module | facts |
//! |---|---|
//! | [`externs`] | imports and exports |
//! | [`functions`] | exported functions with WIT types, docs and tool names |
//! | [`interfaces`] | the table of interfaces that the host links or refuses |
//! | [`mod@inspect`] | capabilities that a program could request, metadata |
//! | [`descriptor`] | descriptions of tools in custom sections |
//! | [`mod@language`] | language that an interpreter runs |
//! | [`preflight`] | limits and features, before compilation |
//!
//! The modules import one another in this order: `error`, `text`, `form`, `sections`, `nesting`, `descriptor`,
//! `language`, `extensions`, `externs`, `functions`, `kind`, `capability`, `interfaces`, `inspect`, `preflight`. Only `sections` walks sections.
//!
//! Every reader accepts any bytes: nesting, counts and sizes are bounded, and an error names the bound.

pub mod capability;
pub mod descriptor;
mod error;
mod extensions;
pub mod externs;
mod form;
pub mod functions;
pub mod inspect;
pub mod interfaces;
mod kind;
pub mod language;
mod nesting;
pub mod preflight;
mod sections;

pub use error::{Error, Result};
pub use form::{Form, MAX_PROGRAM_BYTES, digest, digest_of};
pub use inspect::inspect;
pub use kind::{CALL, INTERPRETER, ProgramKind, RUN};
pub use language::{Language, language};
