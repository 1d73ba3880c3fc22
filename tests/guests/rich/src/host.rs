//! Tools with unusual requests to the host.

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

/// Show more parts than the limit.
#[tool]
pub(crate) fn flood(count: u32, #[arg(default = 0)] bytes: u32) -> String {
    for number in 0..count {
        progress::text(format!("{number}{}", "x".repeat(bytes as usize)));
    }
    format!("{count} shown")
}

/// Query the model, and return its last answer.
#[tool(model)]
pub(crate) fn asks(prompt: String, #[arg(default = 1)] times: u32, tokens: Option<u32>) -> Result<String> {
    let mut said = String::new();
    for _ in 0..times {
        let question = model::Question::new(&prompt);
        said = tokens.map_or(question.clone(), |tokens| question.max_tokens(tokens)).ask()?.text;
    }
    Ok(said)
}

/// Call another tool, and return its last answer.
#[tool(tools)]
pub(crate) fn calls(
    name: &str,
    #[arg(default = "null")] arguments: Value,
    #[arg(default = 1)] times: u32,
) -> Result<Value> {
    let arguments = if arguments.is_object() { arguments } else { json!({}) };
    (0..times).try_fold(Value::Null, |_, _| tools::call(name, &arguments))
}

/// Store a value under a key, and return the previous value.
#[tool(cache)]
pub(crate) fn remember(key: &str, value: Option<String>) -> Result<Value> {
    let before = cache::get(key);
    if let Some(value) = value {
        cache::set(key, &value)?;
    }
    Ok(json!({ "before": before }))
}
