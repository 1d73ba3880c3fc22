//! Other tools of the crib, each under its own grant and limits. A tool asks for them with `#[tool(tools("NAME"))]`.

use serde::Serialize;
use serde_json::Value;

use crate::answer::text_of;
use crate::{Error, Result, host};

/// Calls one by its name. An answer that is no JSON is a string.
///
/// # Errors
///
/// Where the arguments are no JSON, or the call fails.
pub fn call(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<Value> {
    let answer = host::tools::call(name, &text_of(arguments)?).map_err(Error::new)?;
    Ok(serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
}
