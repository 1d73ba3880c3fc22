//! Guest calls. Each one runs in a fresh store, under the limits of its call.

mod command;
mod execute;
mod rich;
mod script;
mod typed;
mod values;

pub(crate) use script::{Interpreter, ScriptCall};
