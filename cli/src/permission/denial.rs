//! Hints about denied capabilities: those in a receipt that can be the reason of its outcome, each once, with the flag that
//! would have allowed it.

use std::path::Path;

use toolcrib::call::{Behavior, Denial, Reason};
use toolcrib::policy::controlled_by;
use toolcrib::{Outcome, Receipt};

/// Resource of the capabilities for files and folders.
const FILES: &str = "files";
/// Resource of the capabilities for the network.
const NETWORK: &str = "net";
/// Ends of flags with a placeholder instead of a value.
const PLACEHOLDERS: [&str; 2] = ["=DIR", "=HOST"];

/// Returns a hint for each denied capability that can be the reason of the outcome.
pub(crate) fn denial_hints(receipt: &Receipt) -> Vec<String> {
    let denied: Vec<&Denial> = receipt.denied.iter().filter(|denial| can_explain(receipt, denial)).collect();
    let mut hinted: Vec<&Denial> = Vec::new();
    for denial in &denied {
        let has_value = |other: &&Denial| is_alike(other, denial) && other.flag.is_some() && !has_placeholder(other);
        let is_implied = has_placeholder(denial) && denied.iter().any(has_value);
        if !is_implied && !hinted.iter().any(|hinted| covers(hinted, denial)) {
            hinted.push(denial);
        }
    }
    hinted.into_iter().map(hint).collect()
}

fn hint(Denial { capability, flag, .. }: &Denial) -> String {
    match (flag, protected_path(capability)) {
        (Some(flag), _) => format!("`{capability}` is not allowed; use {flag}"),
        (None, Some((path, settles))) => format!("`{path}` controls {settles}; tools cannot write it"),
        (None, None) => format!("`{capability}` is not allowed"),
    }
}

/// Returns the path of a denied capability and its purpose, if no tool may write it.
fn protected_path(capability: &str) -> Option<(&str, &'static str)> {
    let path = capability.strip_prefix("write:")?;
    Some((path, controlled_by(Path::new(path))?))
}

/// Returns `true` unless the call ended for another reason. A receipt lists every denied request of the tool, also those
/// that the call never used.
fn can_explain(receipt: &Receipt, denial: &Denial) -> bool {
    use Outcome::{BadArguments, BadComponent, Busy, SchemaNotLoaded, Unlogged};
    if let BadArguments | BadComponent | Busy | SchemaNotLoaded | Unlogged = receipt.outcome {
        return false;
    }
    let refusal = receipt.decision.as_ref().filter(|decision| decision.behavior == Behavior::Deny);
    match refusal.map(|refusal| (refusal.reason, refusal.rests_on.as_deref())) {
        Some((Reason::Grant, Some(capability))) => resource(capability) == resource(&denial.capability),
        Some((Reason::Rule | Reason::Refused | Reason::Nobody, _)) => false,
        _ => is_specific(denial) || is_used(receipt, resource(&denial.capability)),
    }
}

/// Returns `true` if the tool tried to use a resource of which it was granted nothing.
fn is_used(receipt: &Receipt, name: &str) -> bool {
    let is_attempt = |denial: &&Denial| {
        let other = resource(&denial.capability);
        // A script can also name folders for a program.
        is_specific(denial) && (other == name || other == "exec" && name == FILES)
    };
    receipt.missed_folders && name == FILES || receipt.denied.iter().any(|denial| is_attempt(&denial))
}

/// `false` for a request of folders or the network without a name.
fn is_specific(denial: &Denial) -> bool {
    !["read", "write", "net"].contains(&denial.capability.as_str())
}

/// Resource of a capability: everything that the same kind of flag allows.
fn resource(capability: &str) -> &str {
    match capability.split_once(':').map_or(capability, |(kind, _)| kind) {
        "read" | "write" => FILES,
        "net" | "connect" => NETWORK,
        kind => kind,
    }
}

fn is_alike(one: &Denial, other: &Denial) -> bool {
    resource(&one.capability) == resource(&other.capability)
}

fn has_placeholder(denial: &Denial) -> bool {
    denial.flag.as_ref().is_some_and(|flag| PLACEHOLDERS.iter().any(|end| flag.ends_with(end)))
}

/// Returns `true` if a hint about `one` also covers `other`.
fn covers(one: &Denial, other: &Denial) -> bool {
    let destination = |denial: &'_ Denial| {
        let text = denial.capability.strip_prefix("net:")?;
        Some(text.strip_prefix("https://").unwrap_or(text).to_owned())
    };
    one.flag.is_some() && one.flag == other.flag
        || has_placeholder(one) && has_placeholder(other) && is_alike(one, other)
        || destination(one).is_some_and(|one| destination(other) == Some(one))
}
