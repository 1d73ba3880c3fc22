//! What a person can do about a call that was refused: the flag that would have let this very call run, or that there is
//! none.

use serde_json::Value;
use toolcrib::call::{Behavior, Reason};
use toolcrib::policy::Rule;
use toolcrib::{Receipt, Tool};

use crate::render::inert;

/// The longest value that a flag names, in characters.
const MAX_CHARS: usize = 80;

/// The hint for a refusal that a person can do something about. `tool` and `arguments` are those of the call.
pub(crate) fn hint(receipt: &Receipt, tool: Option<&Tool>, arguments: &str) -> Option<String> {
    let decision = receipt.decision.as_ref().filter(|decision| decision.behavior == Behavior::Deny)?;
    match decision.reason {
        Reason::Nobody => {
            // What a hook has changed is in no record, so that a flag can only name the tool.
            let arguments = if receipt.mutations.is_empty() { arguments } else { "" };
            let flag = tool.and_then(|tool| flag(tool, arguments));
            let flag = flag.map(|flag| format!(", or allow it with `{flag}`")).unwrap_or_default();
            Some(format!("`{}` needs a yes: run it on a terminal{flag}", receipt.tool))
        }
        Reason::Rule => {
            let rule = decision.rests_on.as_deref().unwrap_or("a rule");
            Some(format!("`{rule}` refuses this call, and no flag overrides a denial: change the rule itself"))
        }
        _ => None,
    }
}

/// The flag that allows this call and few others, as a shell takes it.
fn flag(tool: &Tool, arguments: &str) -> Option<String> {
    let arguments = match arguments.trim() {
        "" => Value::Object(serde_json::Map::new()),
        text => serde_json::from_str(text).ok()?,
    };
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
    allows(&pattern).then(|| format!("--allow-tool='{pattern}'"))
}

/// The arguments that tell this call from others: those that the tool's record names, or else all that are short.
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
        Value::String(text) => text.chars().count() <= MAX_CHARS,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    let is_plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let short = arguments.as_object().into_iter().flatten().filter(|(name, value)| is_plain(name) && is_short(value));
    short.map(|(name, value)| (name.as_str(), value)).collect()
}

/// Patterns for a value, the narrowest first. What a path means has to match, too: `./x` is `x`.
fn globs_of(value: &Value) -> Option<Vec<String>> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => return items.first().and_then(globs_of),
        Value::Object(_) => return None,
        other => other.to_string(),
    };
    if text.contains(['*', '?']) {
        // As a pattern it would allow more than this call.
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

/// `text` with `?` for each of `others` and for what cannot stand in one line.
fn safe(text: &str, others: &str) -> String {
    let stays =
        |c: char| !others.contains(c) && !c.is_control() && inert(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8();
    text.chars().map(|c| if stays(c) { c } else { '?' }).collect()
}
