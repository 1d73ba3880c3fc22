//! Tools for the sake of what they ask of the host.

use toolcrib_guest::{Result, Value, cache, json, log, model, progress, tool, tools};

/// Show three parts before it is done.
#[tool]
pub(crate) fn stream() -> &'static str {
    for part in ["one", "two", "three"] {
        progress::text(part);
    }
    progress::measure(3, 3);
    log::info("all is shown");
    "done"
}

/// Show more parts than anybody wants to see.
#[tool]
pub(crate) fn flood(count: u32) -> String {
    for number in 0..count {
        progress::text(number.to_string());
    }
    format!("{count} shown")
}

/// Ask the model.
#[tool(model)]
pub(crate) fn asks(prompt: String) -> Result<String> {
    model::ask(prompt)
}

/// Call another tool.
#[tool(tools)]
pub(crate) fn calls(name: &str, #[arg(default = "null")] arguments: Value) -> Result<Value> {
    match arguments {
        Value::Object(_) => tools::call(name, &arguments),
        _ => tools::call(name, &json!({})),
    }
}

/// Keep a value under a key, and tell what was there before.
#[tool(cache)]
pub(crate) fn remember(key: &str, value: Option<String>) -> Result<Value> {
    let before = cache::get(key);
    if let Some(value) = value {
        cache::set(key, &value)?;
    }
    Ok(json!({ "before": before }))
}
