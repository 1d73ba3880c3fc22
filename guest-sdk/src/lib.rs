//! Write a tool for a language-model agent: a function from arguments to a result.
//!
//! ```no_run
//! //! Says hello.
//!
//! use serde::{Deserialize, Serialize};
//! use toolcrib_guest::Error;
//!
//! #[derive(Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     name: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Output {
//!     greeting: String,
//! }
//!
//! fn run(args: Args) -> Result<Output, Error> {
//!     Ok(Output { greeting: format!("hello, {}", args.name) })
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     toolcrib_guest::command(run)
//! }
//! ```
//!
//! Build it with `cargo build --release --target wasm32-wasip2`: the `.wasm` file is the tool. It can be tried without a sandbox,
//! since it is an ordinary program:
//!
//! ```console
//! $ echo '{"name":"Ada"}' | cargo run --quiet
//! {"greeting":"hello, Ada"}
//! $ echo '{"nmae":"Ada"}' | cargo run --quiet
//! {"error":"arguments: unknown field `nmae`, expected `name` at line 1 column 7"}
//! ```
//!
//! # The contract
//!
//! A command tool reads its arguments, one JSON object, on stdin; nothing there means `{}`. It prints exactly one line of JSON on stdout
//! and exits 0. When it fails, it prints one line `{"error":"…"}` on stderr and exits 1. [`command`] keeps this contract, so a tool must
//! not print anything itself.
//!
//! # Files
//!
//! A tool sees the folders it was granted and nothing else. The first one is `/` and the working folder, so `notes.md` and `/notes.md`
//! are the same file; each further one is `/NAME`. [`PathContext`] puts the path into an error, and [`files`] reads with a bound and
//! writes so that no reader ever sees half a file:
//!
//! ```
//! use toolcrib_guest::{Error, PathContext, files};
//!
//! fn archive(path: &str) -> Result<u64, Error> {
//!     let text = files::read_text(path, 64 * 1024)?;
//!     files::replace("archive.md", text.as_bytes())?;
//!     std::fs::remove_file(path).at("remove", path)?;
//!     Ok(text.len() as u64)
//! }
//!
//! let refused = archive("no/such/file").expect_err("there is no such file");
//! assert_eq!(refused.to_string(), "read `no/such/file`: no such file or folder");
//! ```
//!
//! # Errors
//!
//! `?` takes every [`std::error::Error`]; [`error!`] makes an [`Error`] from a message:
//!
//! ```
//! use toolcrib_guest::{Error, error};
//!
//! fn port(text: &str) -> Result<u16, Error> {
//!     let port = text.parse()?;
//!     if port < 1024 {
//!         return Err(error!("port `{port}` is reserved; use 1024 or above"));
//!     }
//!     Ok(port)
//! }
//!
//! assert_eq!(port("80").expect_err("reserved").to_string(), "port `80` is reserved; use 1024 or above");
//! assert_eq!(port("x").expect_err("not a number").to_string(), "invalid digit found in string");
//! ```

extern crate self as toolcrib_guest;

mod answer;
#[doc(hidden)]
pub mod bindings;
pub mod cache;
mod call;
mod command;
mod content;
mod error;
mod export;
pub mod files;
mod host;
pub mod log;
pub mod model;
mod node;
pub mod progress;
mod schema;
pub mod secrets;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tool;
pub mod tools;
mod tree;

pub use answer::{IntoAnswer, Json};
pub use bindings::present::exports::toolcrib::tool::present::Presentation;
pub use bindings::route::exports::toolcrib::tool::route::Opinion;
pub use bindings::tool::toolcrib::tool::types::{
    Answer, FailureKind, Invocation as Call, Link, Media, Native, Part, Payload,
};
pub use call::Preparation;
pub use command::command;
pub use content::Encoding;
pub use error::{Error, PathContext, Result};
pub use node::Node;
pub use schema::{Output, Schema};
pub use serde_json::{Value, json};
pub use tool::{IntoPreview, Listed, Tool};
pub use toolcrib_guest_macro::{Schema, tool, tools};

/// What the macros write in.
#[doc(hidden)]
pub mod __private {
    pub use serde;
    pub use toolcrib_guest_macro::__tools;

    pub use crate::call::Fields;
    pub use crate::export::Component;
    pub use crate::node::distinct;
    pub use crate::tool::prepared;
}
