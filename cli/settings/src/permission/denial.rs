//! Hints about denied capabilities: those in a receipt that can be the reason of its outcome, each once, with the flag that
//! would have allowed it or the flag that denies it.

use std::path::Path;

use toolcrib::call::{Behavior, Denial, Reason};
use toolcrib::policy::controlled_by;
use toolcrib::tool::{Host, Scheme, SecretHost};
use toolcrib::{Outcome, Receipt};
use toolcrib_base::render::{self, one_line};

use super::DenyFlags;

/// Resource of the capabilities for files and folders.
const FILES: &str = "files";
/// Resource of the capabilities for the network.
const NETWORK: &str = "net";
/// Ends of flags with a placeholder instead of a value.
const PLACEHOLDERS: [&str; 2] = ["=DIR", "=HOST"];

/// Returns a hint for each denied capability that can be the reason of a failure. For a call that succeeded, returns hints
/// only for secrets that its requests lacked.
pub fn denial_hints(receipt: &Receipt, has_failed: bool, deny_flags: &DenyFlags) -> Vec<String> {
    let is_relevant = |denial: &&Denial| match has_failed {
        true => can_explain(receipt, denial),
        false => is_missed_secret(receipt, &denial.capability),
    };
    let denied: Vec<&Denial> = receipt.denied.iter().filter(is_relevant).collect();
    // A flag with a value is one that no denial overrides.
    let is_overridden = |denial: &Denial| denial.flag.is_none() || has_placeholder(denial);
    let overriding = |denial: &Denial| {
        is_overridden(denial).then(|| deny_flags.overriding(&receipt.tool, &denial.capability)).flatten()
    };
    let mut hinted: Vec<&Denial> = Vec::new();
    for denial in &denied {
        let explains = |other: &&Denial| {
            is_alike(other, denial) && (overriding(other).is_some() || other.flag.is_some() && !has_placeholder(other))
        };
        let is_known = match overriding(denial) {
            Some(flag) => hinted.iter().any(|hinted| overriding(hinted).as_ref() == Some(&flag)),
            None if has_placeholder(denial) && denied.iter().any(explains) => true,
            None => hinted.iter().any(|hinted| covers(hinted, denial)),
        };
        if !is_known {
            hinted.push(denial);
        }
    }
    hinted
        .into_iter()
        .map(|denial| leads_out(receipt, denial).unwrap_or_else(|| hint(denial, overriding(denial))))
        .collect()
}

fn hint(Denial { capability, flag, .. }: &Denial, overriding: Option<String>) -> String {
    // A host in an argument and a request to it are one capability for the user.
    let capability = &capability.strip_prefix("connect:").map_or(capability.clone(), |host| format!("net:{host}"));
    match (overriding, flag, protected_path(capability)) {
        (Some(denial), ..) => format!("`{capability}` is denied by {denial}, which overrides any --allow-* flag"),
        (None, Some(flag), _) => format!("`{capability}` is not allowed; use {flag}"),
        (None, None, Some((path, settles))) => format!("`{path}` controls {settles}; tools cannot write it"),
        (None, None, None) => format!("`{capability}` is not allowed"),
    }
}

/// Returns `true` for the capability of a path.
pub(super) fn is_path(capability: &str) -> bool {
    ["read:", "write:"].iter().any(|kind| capability.starts_with(kind))
}

/// Returns the hint for a path above the root of the sandbox, for which there is no flag.
fn leads_out(receipt: &Receipt, denial: &Denial) -> Option<String> {
    let is_folder = |text: &str| ["read:", "write:"].iter().find_map(|kind| text.strip_prefix(kind).map(str::to_owned));
    let path = is_folder(&denial.capability)?;
    let mut depth = 0_usize;
    let rises = |part: &str| {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
        false
    };
    let root = receipt.granted.iter().find_map(|granted| is_folder(granted))?;
    path.split('/').any(rises).then(|| {
        let root = render::from_here(Path::new(&root)).display().to_string();
        format!("`{}` leads out of the granted folder; the tool sees `{}` as `/`", one_line(&path), one_line(&root))
    })
}

/// Returns `true` for a requested secret that was not allowed although the call sent a request to its host.
fn is_missed_secret(receipt: &Receipt, capability: &str) -> bool {
    let host = || capability.strip_prefix("secret:")?.split_once('@')?.1.split('#').next()?.parse::<SecretHost>().ok();
    let (Some(host), Some(network)) = (host(), &receipt.network) else { return false };
    network.requests.iter().filter(|request| request.status.is_some()).any(|request| {
        let (Ok(name), Some(port)) = (Host::parse(&request.host), request.port) else { return false };
        [Scheme::Http, Scheme::Https].into_iter().any(|scheme| host.matches(scheme, &name, port))
    })
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

/// Returns `true` if the tool tried to use a resource without any grant for it.
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
