//! SDK for tools of a language-model agent. A tool is a function with a doc comment:
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
//!     /// Name of the person.
//!     name: String,
//!     /// Number of repetitions.
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
//! The `Cargo.toml` of the crate needs `crate-type = ["cdylib", "rlib"]` under `[lib]`. Build it with
//! `cargo build --release --target wasm32-wasip2`: the `.wasm` file is the tool. It contains the name, the description,
//! the JSON Schema of the arguments and the requested permissions. [`tools!`] appears once, in the root of the crate,
//! and lists every function with [`#[tool]`](macro@tool), by its path if it is in a module. A missing function is a
//! compile error.
//!
//! # Arguments
//!
//! Each parameter is one argument. Its doc comment is its description, and `#[arg(…)]` adds `name`, `default`,
//! `minimum`, `maximum`, `exclusive_minimum`, `exclusive_maximum`, `multiple_of`, `min_length`, `max_length`,
//! `pattern`, `format`, `min_items`, `max_items`, `unique_items`, `min_properties`, `max_properties`, `examples`, and
//! `items(…)` with the same keys for the items of a list. The host validates a call against the schema before the tool
//! runs. An argument is optional if its type is an [`Option`] or if it has a default; a default that does not fit its type or its
//! bounds is a compile error. Arguments that the schema does
//! not name are refused, except with `#[tool(open)]`.
//!
//! Your own type can be an argument if it implements [`Schema`]; with `#[args]`, its fields are the arguments. A
//! parameter of the type `&Call` receives the [`Call`] itself: its caller, its session, and the operator's settings for
//! this tool ([`Call::config`]).
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
//! /// Compute the area of a field.
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
//! A tool can accept free text in its own format, which a provider's API can enforce. It has one parameter for the
//! text:
//!
//! ```
//! use toolcrib_guest::{Error, Result, tool};
//!
//! toolcrib_guest::tools!(roll);
//!
//! /// Roll dice, such as `2d6`.
//! #[tool(text(regex = "^[1-9]d[1-9]$", description = "Number of dice, and number of sides."))]
//! fn roll(dice: &str) -> Result<String> {
//!     let (count, _sides) = dice.split_once('d').ok_or_else(|| Error::invalid("write dice as `2d6`"))?;
//!     Ok("1 ".repeat(count.parse()?))
//! }
//! # fn main() {}
//! ```
//!
//! `lark = "…"` and `lark_file = "PATH"` (relative to the folder of the `Cargo.toml`) set a grammar. `field` names the
//! argument that carries the text for an API that accepts only objects. A tool with further parameters, all optional, gets
//! an object in either case, with the text in that argument.
//!
//! # Answers and failures
//!
//! A tool returns text, `()`, a [`Value`], [`Json`], a [`Part`] or an [`Answer`], alone or in a [`Result`]. An
//! [`Answer`] can hold different parts for the model and for people:
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
//! `?` converts every [`std::error::Error`]. [`Error::invalid`], [`not_found`](Error::not_found),
//! [`conflict`](Error::conflict) and [`unavailable`](Error::unavailable) set the kind of the failure; every other error
//! is `failed`. [`error!`] creates one from a message.
//!
//! # Permissions and metadata
//!
//! A tool requests permissions, and the operator grants them: `files = "read"` or `"write"`, `network` or
//! `network("api.example.com")`, `env("TZ")`, `tools` or `tools("fs_*")`, `model`, `cache`,
//! `secret(name = "…", host = "…", header = "…")`, `timeout = "5s"`, `limits(memory_mb = 64, …)`. Metadata for rules
//! and people are `read_only`, `destructive`, `open_world`, `summary`, and any other key in `interface(…)`. `aliases`,
//! `tags`, `required_tags`, `forbidden_tags`, `models` and `provider` limit the offers of the tool to models.
//!
//! While it runs, a tool can show [`progress`], write to the [`log`], store values in the [`cache`], query the
//! [`model`], call other [`tools`](mod@tools), and list its [`secrets`].
//!
//! # Steps of a call
//!
//! A tool can implement further steps before and after its work. Each step is a function, and runs without any grant;
//! only `prepare` has the grant of the tool. The type with the name of the tool holds its arguments:
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
//! | option | function | purpose |
//! |---|---|---|
//! | `validate` | `fn(&Call) -> Result<()>` | validates beyond the schema; the model receives the error |
//! | `preview` | `fn(&Call) -> String`, or an `Option` or a `Result` of it | describes the effect of the call before it runs |
//! | `prepare` | `fn(&Preparation) -> Result<T>` | runs once per session; [`Call::prepared`] returns the `T` |
//! | `route` | `fn(&Call) -> Opinion` | claims calls that name no tool |
//! | `present` | `fn(&Call, Result<Answer>) -> Presentation` | presents the outcome to the model, to people and to search |
//!
//! # Tests
//!
//! The function can still be called directly, and [`testing`] calls it as the host would:
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
//! A tool sees only its granted folders. The first one is `/` and the working folder, so `notes.md` and `/notes.md` are
//! the same file; each further one is `/NAME`. [`PathContext`] adds the path to an error. [`files`] limits the size of
//! reads, and writes so that no reader sees a partial file:
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
//! A tool can also be a program. It reads its arguments, one JSON object, from stdin; empty input means `{}`. It prints
//! one line of JSON on stdout with exit code 0, or one line `{"error":"…"}` on stderr with exit code 1. [`command`]
//! implements this contract. A `tools.json` describes such a tool.
//!
//! ```no_run
//! use toolcrib_guest::{Error, Value, json};
//!
//! fn run(arguments: Value) -> Result<Value, Error> {
//!     Ok(json!({ "received": arguments }))
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
mod default;
mod error;
mod export;
pub mod files;
mod host;
#[cfg(target_arch = "wasm32")]
pub mod http;
pub mod lines;
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

/// Items that the macros name in generated code.
#[doc(hidden)]
pub mod __private {
    pub use serde;
    pub use toolcrib_guest_macro::__tools;

    pub use crate::call::Fields;
    pub use crate::default::check_default;
    pub use crate::export::Component;
    pub use crate::node::distinct;
    pub use crate::tool::prepared;
}
