//! Interface of a tool to the host: its descriptor, and its function for each step of a call. `#[tool]` generates the
//! parts and `tools!` assembles them; none of this is written by hand.

use serde::Serialize;

use crate::answer::text_of;
use crate::{Answer, Call, Error, Opinion, Preparation, Presentation, Result};

/// One tool.
pub trait Tool: Listed {
    /// Name of the tool.
    const NAME: &'static str;
    /// Descriptor of the tool: a JSON object.
    const DESCRIPTOR: &'static [u8];

    /// Executes one call.
    ///
    /// # Errors
    ///
    /// If the call fails.
    fn run(call: &Call) -> Result<Answer>;

    /// Validates a call.
    ///
    /// # Errors
    ///
    /// If the call must not run.
    fn validate(_call: &Call) -> Result<()> {
        Ok(())
    }

    /// Describes the effect of a call before it runs.
    fn preview(_call: &Call) -> Option<String> {
        None
    }

    /// Prepares the tool for a session: a JSON text.
    ///
    /// # Errors
    ///
    /// If the tool cannot be prepared.
    fn prepare(_preparation: &Preparation) -> Result<String> {
        Ok("null".into())
    }

    /// Decides if the tool takes a call.
    fn route(_call: &Call) -> Opinion {
        Opinion::NoOpinion
    }

    /// Presents the outcome of a call.
    fn present(_call: &Call, outcome: Result<Answer>) -> Presentation {
        Presentation::of(outcome)
    }
}

/// Tool that the component exports: `tools!` lists it.
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` is not listed in `tools!`",
    label = "this tool would not be exported",
    note = "list every tool once, in the root of the crate: `toolcrib_guest::tools!({Self}, …);`"
)]
pub trait Listed {}

/// Return type of a preview: text, or nothing.
pub trait IntoPreview {
    /// Converts the value into a preview.
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

/// A failed preview is empty; the call itself reports the error.
impl<T: IntoPreview> IntoPreview for Result<T> {
    fn into_preview(self) -> Option<String> {
        self.ok()?.into_preview()
    }
}

/// JSON text of a prepared value.
///
/// # Errors
///
/// If the preparation failed, or the value cannot be written as JSON.
pub fn prepared(made: Result<impl Serialize>) -> Result<String> {
    text_of(&made?)
}

/// Tools of a component, as nested pairs.
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

/// End of the list.
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

/// Generates the functions that call the first tool if it has the requested name, and otherwise the rest of the list.
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
