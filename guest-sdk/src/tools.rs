//! Other tools of the crib, each under its own grant and limits. A tool requests them with `#[tool(tools("NAME"))]`.

use serde::Serialize;
use serde_json::Value;

use crate::answer::text_of;
use crate::{Error, Result, host};

/// Calls a tool by name. A result that is not JSON is returned as a string.
///
/// # Errors
///
/// If the arguments cannot be written as JSON, or the call fails.
pub fn call(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<Value> {
    let answer = host::tools::call(name, &text_of(arguments)?).map_err(Error::new)?;
    Ok(serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
}
