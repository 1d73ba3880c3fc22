//! Guest calls. Each one runs in a fresh store, under the limits of its call.

mod code;
mod command;
mod execute;
mod rich;
mod script;
mod script_image;
mod typed;
mod values;

pub(crate) use code::{CodeEnd, CodeInterpreter, CodeSession};
pub(crate) use script::{Interpreter, ScriptCall, ScriptSource};
pub(crate) use script_image::ScriptImage;
