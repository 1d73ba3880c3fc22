//! Write a tool for a language-model agent: a function, and what is to be said of it.
//!
//! ```
//! //! Greets.
//! use toolcrib_guest::{Result, tool};
//!
//! toolcrib_guest::tools!(greet);
//!
//! /// Greet someone by name.
//! #[tool]
//! fn greet(
//!     /// Whom to greet.
//!     name: String,
//!     /// How often.
//!     #[arg(default = 1, minimum = 1, maximum = 10)]
//!     times: u32,
//!     loud: Option<bool>,
//! ) -> Result<String> {
//!     let greeting = format!("hello, {name}! ").repeat(times as usize);
//!     Ok(if loud == Some(true) { greeting.to_uppercase() } else { greeting })
//! }
//! # fn main() {}
//! ```
//!
//! In the `Cargo.toml` of its crate stands `crate-type = ["cdylib", "rlib"]` under `[lib]`. Built with
//! `cargo build --release --target wasm32-wasip2`, the `.wasm` file is the tool, and all that there is to say of it lies in that
//! file: its name, its description, the JSON Schema of its arguments and what it asks for. [`tools!`] stands once in the root of the
//! crate and names every function with [`#[tool]`](macro@tool), by its path where it lies in a module; one that is forgotten is an
//! error of the compiler.
//!
//! # Arguments
//!
//! Each parameter is one argument. Its doc comment is its description, and `#[arg(…)]` says more: `name`, `default`, `minimum`,
//! `maximum`, `exclusive_minimum`, `exclusive_maximum`, `multiple_of`, `min_length`, `max_length`, `pattern`, `format`,
//! `min_items`, `max_items`, `unique_items`, `min_properties`, `max_properties`, `examples`, and `items(…)` with the same for what a
//! list holds. The host checks a call against the schema before the tool runs. An [`Option`] and what has a default may be missing;
//! arguments that the schema does not name are refused, unless it is `#[tool(open)]`.
//!
//! A type of yours is an argument where it has a [`Schema`], and `#[args]` makes it all of them. A parameter of the type `&Call` is
//! given the [`Call`] itself: who asks, in which session, and what the operator set for this tool ([`Call::config`]).
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use toolcrib_guest::{Call, Json, Result, Schema, tool};
//!
//! toolcrib_guest::tools!(area);
//!
//! #[derive(Deserialize, Schema)]
//! #[serde(deny_unknown_fields)]
//! struct Field {
//!     /// In metres.
//!     #[arg(minimum = 0)]
//!     width: f64,
//!     /// In metres.
//!     #[arg(minimum = 0)]
//!     length: f64,
//! }
//!
//! #[derive(Serialize, Schema)]
//! struct Area {
//!     square_metres: f64,
//! }
//!
//! /// Tell how large a field is.
//! #[tool(output, read_only, timeout = "1s", summary = "measure {width} x {length}")]
//! fn area(#[args] field: Field, call: &Call) -> Result<Json<Area>> {
//!     let scale: Option<f64> = call.config()?;
//!     Ok(Json(Area { square_metres: field.width * field.length * scale.unwrap_or(1.0) }))
//! }
//! # fn main() {}
//! ```
//!
//! # Text
//!
//! A tool may take text in a format of its own, to which a provider's API can hold the model. It has one parameter for it:
//!
//! ```
//! use toolcrib_guest::{Error, Result, tool};
//!
//! toolcrib_guest::tools!(roll);
//!
//! /// Roll dice, such as `2d6`.
//! #[tool(text(regex = "^[1-9]d[1-9]$", description = "How many dice of how many sides."))]
//! fn roll(dice: &str) -> Result<String> {
//!     let (count, _sides) = dice.split_once('d').ok_or_else(|| Error::invalid("write dice as `2d6`"))?;
//!     Ok("1 ".repeat(count.parse()?))
//! }
//! # fn main() {}
//! ```
//!
//! `lark = "…"` and `lark_file = "PATH"` (from the folder of the `Cargo.toml`) are grammars, and `field` names the argument that
//! carries the text where an API knows objects alone.
//!
//! # Answers and failures
//!
//! Text, `()`, a [`Value`], [`Json`], a [`Part`] or an [`Answer`], alone or in a [`Result`]. An [`Answer`] can tell the model one thing
//! and show people another:
//!
//! ```
//! use toolcrib_guest::{Answer, Error, Part, Result, json};
//!
//! fn plot(values: &[f64]) -> Result<Answer> {
//!     if values.is_empty() {
//!         return Err(Error::invalid("there is nothing to plot").details(json!({ "least": 1 })));
//!     }
//!     let image: Vec<u8> = draw(values);
//!     Ok(Answer::json(&json!({ "points": values.len() }))?.show(Part::media("image/png", image).named("plot.png")))
//! }
//! # fn draw(_: &[f64]) -> Vec<u8> { Vec::new() }
//! # assert_eq!(plot(&[]).expect_err("refused").to_string(), "there is nothing to plot");
//! ```
//!
//! `?` takes every [`std::error::Error`]. [`Error::invalid`], [`not_found`](Error::not_found), [`conflict`](Error::conflict) and
//! [`unavailable`](Error::unavailable) tell the host of which kind a failure is; everything else is `failed`. [`error!`] makes one
//! from a message.
//!
//! # What a tool asks for
//!
//! All of it is a request, which the operator may grant: `files = "read"` or `"write"`, `network` or `network("api.example.com")`,
//! `env("TZ")`, `tools` or `tools("fs_*")`, `model`, `cache`, `secret(name = "…", host = "…", header = "…")`, `timeout = "5s"`,
//! `limits(memory_mb = 64, …)`. Facts for rules and people are `read_only`, `destructive`, `open_world`, `summary`, and any other in
//! `interface(…)`; `aliases`, `tags`, `required_tags`, `forbidden_tags`, `models` and `provider` say where it is offered.
//!
//! While it runs, a tool can show [`progress`], write to the [`log`], keep values in the [`cache`], ask the [`model`], call other
//! [`tools`](mod@tools), and learn which [`secrets`] it has.
//!
//! # Steps of a call
//!
//! A tool may have a word before and after its work. Each is a function of its own, and is called without any grant (`prepare`
//! alone has that of the tool). The type that bears the tool's name holds its arguments:
//!
//! ```
//! use toolcrib_guest::{Answer, Call, Part, Presentation, Result, error, tool};
//!
//! toolcrib_guest::tools!(wait);
//!
//! /// Wait for some seconds.
//! #[tool(validate = not_too_long, preview = in_words, present = briefly)]
//! fn wait(seconds: u64) -> String {
//!     std::thread::sleep(std::time::Duration::from_secs(seconds));
//!     format!("waited for {seconds} s")
//! }
//!
//! fn not_too_long(call: &Call) -> Result<()> {
//!     let wait { seconds } = call.args()?;
//!     if seconds > 60 { Err(error!("{seconds} s is too long; wait for 60 s at most")) } else { Ok(()) }
//! }
//!
//! fn in_words(call: &Call) -> Result<String> {
//!     Ok(format!("waits for {} s", call.args::<wait>()?.seconds))
//! }
//!
//! fn briefly(_call: &Call, outcome: Result<Answer>) -> Presentation {
//!     Presentation::new().show(Part::text(if outcome.is_ok() { "rested" } else { "not rested" })).summary("a pause")
//! }
//! # fn main() {}
//! ```
//!
//! | option | function | what it is for |
//! |---|---|---|
//! | `validate` | `fn(&Call) -> Result<()>` | refuses what a schema cannot; the model is told why |
//! | `preview` | `fn(&Call) -> String`, or an `Option` or a `Result` of it | says what is about to happen |
//! | `prepare` | `fn(&Preparation) -> Result<T>` | works once a session; [`Call::prepared`] has the `T` |
//! | `route` | `fn(&Call) -> Opinion` | claims calls that name no tool |
//! | `present` | `fn(&Call, Result<Answer>) -> Presentation` | tells an answer to the model, people and a search apart |
//!
//! # Tests
//!
//! The function stays a function, and [`testing`] calls it as the host would:
//!
//! ```
//! use toolcrib_guest::{Part, json, testing, tool};
//!
//! toolcrib_guest::tools!(double);
//!
//! /// Double a number.
//! #[tool]
//! fn double(number: i32) -> String {
//!     (2 * number).to_string()
//! }
//!
//! # fn main() {
//! assert_eq!(double(2), "4");
//! let answer = testing::call::<double>(json!({ "number": 2 })).expect("an answer");
//! assert_eq!(answer.content, [Part::text("4")]);
//! let refused = testing::call::<double>(json!({ "numer": 2 })).expect_err("refused");
//! assert_eq!(refused.to_string(), "arguments: unknown argument `numer`, expected `number`");
//! # }
//! ```
//!
//! # Files
//!
//! A tool sees the folders it was granted and nothing else. The first one is `/` and the working folder, so `notes.md` and `/notes.md`
//! are the same file; each further one is `/NAME`. [`PathContext`] puts the path into an error, and [`files`] reads with a bound and
//! writes so that no reader ever sees half a file:
//!
//! ```
//! use toolcrib_guest::{PathContext, Result, files};
//!
//! fn archive(path: &str) -> Result<u64> {
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
//! # Command tools
//!
//! A tool can also be a program: its arguments, one JSON object, on stdin, where nothing means `{}`; one line of JSON on stdout and
//! exit code 0, or one line `{"error":"…"}` on stderr and exit code 1. [`command`] keeps this contract. What is said of such a tool
//! stands in a `tools.json`.
//!
//! ```no_run
//! use toolcrib_guest::{Error, Value, json};
//!
//! fn run(arguments: Value) -> Result<Value, Error> {
//!     Ok(json!({ "got": arguments }))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     toolcrib_guest::command(run)
//! }
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
#[cfg(target_arch = "wasm32")]
pub mod http;
pub mod log;
pub mod model;
mod node;
pub mod progress;
mod schema;
pub mod secrets;
#[cfg(any(not(target_arch = "wasm32"), doc))]
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
