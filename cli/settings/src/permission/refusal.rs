//! Hints about denied calls: the flag that would allow this call, if there is one.

use serde_json::Value;
use toolcrib::call::{Behavior, HeldChanges, HeldEnd, Reason};
use toolcrib::policy::Rule;
use toolcrib::tool::Body;
use toolcrib::{Receipt, Tool};
use toolcrib_base::render::{self, MAX_EXCERPT, counted, inert};

/// Returns the hint for a denial that the user can resolve. `tool` and `arguments` belong to the call.
pub fn hint(receipt: &Receipt, tool: Option<&Tool>, arguments: &str) -> Option<String> {
    if let Some(hint) = receipt.held.as_ref().and_then(|held| held_hint(held, &receipt.invocation)) {
        return Some(hint);
    }
    let decision = receipt.decision.as_ref().filter(|decision| decision.behavior == Behavior::Deny)?;
    match decision.reason {
        // No allow rule answers for a flow.
        Reason::Nobody if decision.rests_on.as_deref().is_some_and(|rule| rule.starts_with("ask flow ")) => {
            let rule = decision.rests_on.as_deref().unwrap_or_default();
            let setting = if rule.ends_with("(approvals.flows)") { ", or `--set=approvals.flows=never`" } else { "" };
            Some(format!(
                "`{}` requires approval after what was read, by `{rule}`: run in a terminal{setting}",
                receipt.tool
            ))
        }
        Reason::Nobody if receipt.held.is_some() => Some(format!(
            "somebody must agree to what `{}` changed: run in a terminal, or keep it with --stage until `toolcrib stage commit`",
            receipt.tool
        )),
        Reason::Nobody => {
            // Arguments changed by a hook are not recorded, so the flag can only name the tool.
            let arguments = if receipt.mutations.is_empty() { arguments } else { "" };
            let flag = tool.and_then(|tool| flag(tool, arguments));
            let flag = flag.map(|flag| format!(", or pre-approve with `{flag}`")).unwrap_or_default();
            Some(format!("`{}` requires approval: run in a terminal{flag}", receipt.tool))
        }
        Reason::Rule => {
            let rule = decision.rests_on.as_deref().unwrap_or("a rule");
            Some(format!("`{rule}` denies this call, and no flag overrides a denial: change the rule"))
        }
        _ => None,
    }
}

/// Returns the hint about changes that were made after an answer.
fn held_hint(held: &HeldChanges, invocation: &str) -> Option<String> {
    match held.end {
        HeldEnd::Committed | HeldEnd::Unsent if held.changes > 0 => {
            let changes = counted(usize::try_from(held.changes).unwrap_or(usize::MAX), "change");
            Some(format!("`toolcrib undo {invocation}` takes {changes} of this call back"))
        }
        HeldEnd::Incomplete => Some(format!(
            "`toolcrib stage commit {invocation}` commits the remaining changes; requests that were held back are not sent"
        )),
        _ => None,
    }
}

/// The narrowest flag that allows this call, quoted for a shell.
fn flag(tool: &Tool, arguments: &str) -> Option<String> {
    let arguments = match arguments.trim() {
        "" => Value::Object(serde_json::Map::new()),
        text => serde_json::from_str(text).ok()?,
    };
    // A flag names no array, and those of a command line can be options of its program.
    let is_command_line = matches!(tool.body, Body::Command { command_line: Some(_), .. });
    if is_command_line && arguments.as_object()?.values().any(|value| value.is_array() || value.is_object()) {
        return None;
    }
    let name = safe(&tool.name, " ,=()\"'");
    let allows = |pattern: &str| {
        let rule = pattern.parse().ok().map(|pattern| Rule::new(Behavior::Allow, pattern, ""));
        rule.is_some_and(|rule| rule.matches_call(&tool.name, &arguments))
    };
    let mut globs = Vec::new();
    for (argument, value) in named(tool, &arguments) {
        let glob = globs_of(value)?.into_iter().find(|glob| allows(&format!("{name}({argument}={glob})")))?;
        globs.push(format!("{argument}={glob}"));
    }
    let pattern = if globs.is_empty() { name.clone() } else { format!("{name}({})", globs.join(", ")) };
    allows(&pattern).then(|| format!("--allow-tool={}", render::quoted_word(&pattern)))
}

/// The arguments that identify this call: those named in the tool's definition, or else all short ones.
fn named<'a>(tool: &'a Tool, arguments: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let matcher = tool.interface.permission.permission_matcher.value.as_deref();
    let resources = tool.interface.validation.io_preflight_validation.value.iter().map(|one| one.field.as_str());
    let found = |name: &'a str| match name.strip_prefix('/') {
        Some(key) if !key.contains(['/', '~']) => Some((key, arguments.get(key)?)),
        Some(_) => Some((name, arguments.pointer(name)?)),
        None => Some((name, arguments.get(name)?)),
    };
    let stated: Vec<_> = matcher.into_iter().chain(resources).filter_map(found).collect();
    if !stated.is_empty() {
        return stated;
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => text.chars().count() <= MAX_EXCERPT,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    let is_plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let short = arguments.as_object().into_iter().flatten().filter(|(name, value)| is_plain(name) && is_short(value));
    short.map(|(name, value)| (name.as_str(), value)).collect()
}

/// Patterns for a value, the narrowest first. A path must also match in its normal form: `./x` is `x`.
fn globs_of(value: &Value) -> Option<Vec<String>> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => return items.first().and_then(globs_of),
        Value::Object(_) => return None,
        other => other.to_string(),
    };
    if text.contains(['*', '?']) {
        // As a pattern it would match more than this call.
        return None;
    }
    // A `\` separates the parts of a path as a `/` does.
    let quoted = |glob: &str| format!("\"{}\"", safe(glob, "\"'\\"));
    let plain = |glob: &str| match glob.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@+*".contains(c)) {
        true if !glob.is_empty() => glob.to_owned(),
        _ => quoted(glob),
    };
    let inner = text.trim_start_matches("./").trim_start_matches('/');
    Some(vec![plain(&text), plain(&format!("*{inner}"))])
}

/// Replaces each of `others`, and each character that is not printable on one line, with `?`.
fn safe(text: &str, others: &str) -> String {
    let stays =
        |c: char| !others.contains(c) && !c.is_control() && inert(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8();
    text.chars().map(|c| if stays(c) { c } else { '?' }).collect()
}
