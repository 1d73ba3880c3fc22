//! Odd tools.

use toolcrib_guest::{Call, Result, progress, tool};

toolcrib_guest::tools!(echo, stream);

/// Return a value as text.
#[tool(name = "echo", preview = echo_preview)]
fn echo(
    /// What to return.
    value: String,
) -> String {
    value
}

fn echo_preview(call: &Call) -> Result<String> {
    Ok(format!("echo value='{}'", call.args::<echo>()?.value))
}

/// Show three parts while it runs.
#[tool]
fn stream() -> &'static str {
    for part in ["one", "two", "three"] {
        progress::text(part);
    }
    "done"
}
