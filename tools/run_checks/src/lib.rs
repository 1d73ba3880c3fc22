//! Tool `run_checks`: calls other tools one after the other, shows each result immediately, and compares each with the
//! expected one.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Answer, Error, Part, Result, Schema, Value, json, progress, tool, tools};

tools!(run_checks);

const MAX_CHECKS: usize = 32;
/// Maximum characters of one answer in the result.
const MAX_CHARS: usize = 500;

// One check. A doc comment would be sent to the model.
#[derive(Debug, Deserialize, Schema)]
#[serde(deny_unknown_fields)]
struct Check {
    tool: String,
    /// Default: `{}`
    #[serde(default)]
    arguments: Option<Value>,
    /// Text that the answer must contain; else success is enough
    #[serde(default)]
    expect: Option<String>,
}

/// Result of a check.
#[derive(Debug, Serialize)]
struct CheckResult<'a> {
    tool: &'a str,
    ok: bool,
    ms: u64,
    said: String,
}

/// Call tools that the operator allows, one after the other, and return each result.
#[tool(tools, timeout = "30s", summary = "run checks", interface(search_hint = "test several tools verify"))]
fn run_checks(
    #[arg(min_items = 1, max_items = 32)] checks: Vec<Check>,
    stop_on_failure: Option<bool>,
) -> Result<Answer> {
    if checks.is_empty() || checks.len() > MAX_CHECKS {
        return Err(Error::invalid(format!("{} checks, expected 1 to {MAX_CHECKS}", checks.len())));
    }
    let mut ended = Vec::with_capacity(checks.len());
    for (done, check) in checks.iter().enumerate() {
        let one = run(check);
        progress::text(line(&one));
        progress::measure(done as u64 + 1, checks.len() as u64);
        let stops = stop_on_failure == Some(true) && !one.ok;
        ended.push(one);
        if stops {
            break;
        }
    }
    let passed = ended.iter().filter(|one| one.ok).count();
    let skipped = checks.len() - ended.len();
    let lines: Vec<String> = ended.iter().map(line).collect();
    let result = json!({ "passed": passed, "failed": ended.len() - passed, "skipped": skipped, "results": ended });
    Ok(Answer::json(&result)?.show(Part::text(lines.join("\n"))))
}

fn run(check: &Check) -> CheckResult<'_> {
    let since = Instant::now();
    let arguments = check.arguments.clone().unwrap_or_else(|| json!({}));
    let (ok, said) = match toolcrib_guest::tools::call(&check.tool, &arguments) {
        Err(error) => (false, error.to_string()),
        Ok(answer) => {
            let said = match answer {
                Value::String(text) => text,
                other => other.to_string(),
            };
            (check.expect.as_ref().is_none_or(|expected| said.contains(expected)), said)
        }
    };
    let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    CheckResult { tool: &check.tool, ok, ms, said: cut(said) }
}

/// Cuts a long answer, and marks that it is cut.
fn cut(said: String) -> String {
    match said.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}… [cut after {MAX_CHARS} of {} characters]", &said[..end], said.chars().count()),
        None => said,
    }
}

fn line(one: &CheckResult<'_>) -> String {
    format!("{} {} ({} ms)", if one.ok { "ok" } else { "FAILED" }, one.tool, one.ms)
}

#[cfg(test)]
mod tests {
    use toolcrib_guest::testing;

    use super::*;

    fn told(stop: bool) -> (Value, Vec<Part>) {
        testing::tools(|name, arguments| match name {
            "good" => Ok(arguments.to_string()),
            _ => Err("no such tool".to_owned()),
        });
        let checks = json!([
            {"tool": "good", "arguments": {"a": 1}, "expect": "\"a\":1"},
            {"tool": "good", "expect": "never"},
            {"tool": "bad"},
        ]);
        let arguments = json!({"checks": checks, "stop_on_failure": stop});
        let (answer, seen) = testing::record(|| testing::call::<run_checks>(arguments).expect("an answer"));
        let [Part::Json(told)] = &answer.content[..] else { panic!("{:?}", answer.content) };
        (told.parse().expect("JSON"), seen.parts)
    }

    #[test]
    fn each_check_is_told_and_shown() {
        let (told, parts) = told(false);
        assert_eq!((&told["passed"], &told["failed"], &told["skipped"]), (&json!(1), &json!(2), &json!(0)));
        assert_eq!(told["results"][2]["said"], "no such tool");
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn the_first_failure_may_be_the_end() {
        let (told, _) = told(true);
        assert_eq!((&told["failed"], &told["skipped"]), (&json!(1), &json!(1)));
    }
}
