//! What a tool is to the host: its descriptor, and what it says at each step of a call. `#[tool]` writes the parts, `tools!`
//! puts them together; nothing here is written by hand.

use serde::Serialize;

use crate::answer::text_of;
use crate::{Answer, Call, Error, Opinion, Preparation, Presentation, Result};

/// One tool.
pub trait Tool: Listed {
    /// Its name.
    const NAME: &'static str;
    /// All that is said of it: a JSON object.
    const DESCRIPTOR: &'static [u8];

    /// Does the work of one call.
    ///
    /// # Errors
    ///
    /// Where the call fails.
    fn run(call: &Call) -> Result<Answer>;

    /// Judges a call.
    ///
    /// # Errors
    ///
    /// Where it must not run.
    fn validate(_call: &Call) -> Result<()> {
        Ok(())
    }

    /// Says what a call is about to do.
    fn preview(_call: &Call) -> Option<String> {
        None
    }

    /// Prepares it: a JSON text.
    ///
    /// # Errors
    ///
    /// Where it cannot be prepared.
    fn prepare(_preparation: &Preparation) -> Result<String> {
        Ok("null".into())
    }

    /// Says whose a call is.
    fn route(_call: &Call) -> Opinion {
        Opinion::NoOpinion
    }

    /// Presents what a call came to.
    fn present(_call: &Call, outcome: Result<Answer>) -> Presentation {
        Presentation::of(outcome)
    }
}

/// A tool that the component exports: `tools!` has listed it.
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` is not listed in `tools!`",
    label = "this tool would not be exported",
    note = "list every tool once, in the root of the crate: `toolcrib_guest::tools!({Self}, …);`"
)]
pub trait Listed {}

/// What a preview may be: text, or nothing.
pub trait IntoPreview {
    /// The preview.
    fn into_preview(self) -> Option<String>;
}

impl IntoPreview for String {
    fn into_preview(self) -> Option<String> {
        Some(self)
    }
}

impl<T: IntoPreview> IntoPreview for Option<T> {
    fn into_preview(self) -> Option<String> {
        self?.into_preview()
    }
}

/// What cannot be previewed is left to the call.
impl<T: IntoPreview> IntoPreview for Result<T> {
    fn into_preview(self) -> Option<String> {
        self.ok()?.into_preview()
    }
}

/// The text of what a tool prepared.
///
/// # Errors
///
/// Where it failed, or is no JSON.
pub fn prepared(made: Result<impl Serialize>) -> Result<String> {
    text_of(&made?)
}

/// The tools of a component, as nested pairs.
pub trait Toolbox {
    /// See [`Tool::run`].
    fn run(call: &Call) -> Result<Answer>;
    /// See [`Tool::validate`].
    fn validate(call: &Call) -> Result<()>;
    /// See [`Tool::preview`].
    fn preview(call: &Call) -> Option<String>;
    /// See [`Tool::prepare`].
    fn prepare(preparation: &Preparation) -> Result<String>;
    /// See [`Tool::route`].
    fn route(call: &Call) -> Opinion;
    /// See [`Tool::present`].
    fn present(call: &Call, outcome: Result<Answer>) -> Presentation;
}

/// The end of the list.
impl Toolbox for () {
    fn run(call: &Call) -> Result<Answer> {
        Err(unknown(&call.tool))
    }

    fn validate(call: &Call) -> Result<()> {
        Err(unknown(&call.tool))
    }

    fn preview(_call: &Call) -> Option<String> {
        None
    }

    fn prepare(preparation: &Preparation) -> Result<String> {
        Err(unknown(&preparation.tool))
    }

    fn route(_call: &Call) -> Opinion {
        Opinion::NoOpinion
    }

    fn present(_call: &Call, outcome: Result<Answer>) -> Presentation {
        Presentation::of(outcome)
    }
}

/// The functions that ask one tool where it is meant, and the rest where it is not.
macro_rules! ask {
    ($($name:ident($first:ident: &$type:ty $(, $second:ident: $other:ty)?) -> $answer:ty;)*) => {$(
        fn $name($first: &$type $(, $second: $other)?) -> $answer {
            match $first.tool == T::NAME {
                true => T::$name($first $(, $second)?),
                false => Rest::$name($first $(, $second)?),
            }
        }
    )*};
}

impl<T: Tool, Rest: Toolbox> Toolbox for (T, Rest) {
    ask! {
        run(call: &Call) -> Result<Answer>;
        validate(call: &Call) -> Result<()>;
        preview(call: &Call) -> Option<String>;
        prepare(preparation: &Preparation) -> Result<String>;
        route(call: &Call) -> Opinion;
        present(call: &Call, outcome: Result<Answer>) -> Presentation;
    }
}

fn unknown(tool: &str) -> Error {
    Error::not_found(format!("this component has no tool `{tool}`"))
}
