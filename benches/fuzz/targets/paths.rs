//! Target for paths and rules: for every spelling of a path, a deny rule for its folder applies, an allow rule for another
//! folder does not, and a path that leaves the grant is refused before the tool starts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::policy::{Pattern, Permission, Policy, Rule};
use toolcrib::{Outcome, Runtime};

use super::{Act, call, manifest_of, parts};

/// Target for paths. Input: the pattern of a rule, a NUL, and a path or JSON arguments.
pub(super) fn paths(folder: &Path) -> Act {
    let named = json!([{"field": "/path", "use": "read"}]);
    let source = manifest_of(folder, json!({"interface": {"io_preflight_validation": named}}));
    let desk = folder.join("desk");
    fs::create_dir_all(&desk).expect("a folder");
    let policy = Policy::default().allow(Permission::Read(desk));
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .source(&source)
        .policy(policy)
        .concurrency(1)
        .build()
        .expect("a runtime");
    let threads = super::threads();
    let rule = |behavior, text: &str| Rule::new(behavior, text.parse().expect("a pattern"), "here");
    let denied = rule(Behavior::Deny, "t(path=secrets/*)");
    let allowed = rule(Behavior::Allow, "t(path=out/*)");
    Box::new(move |input| {
        let (pattern, given) = parts(input);
        let (Ok(pattern), Ok(given)) = (std::str::from_utf8(pattern), std::str::from_utf8(given)) else { return };
        let arguments = serde_json::from_str(given).unwrap_or_else(|_| json!({ "path": given }));
        if let Ok(pattern) = pattern.parse::<Pattern>() {
            let [allow, deny] = [Behavior::Allow, Behavior::Deny].map(|one| Rule::new(one, pattern.clone(), "here"));
            let sure = allow.matches_call("t", &arguments);
            assert!(!sure || deny.matches_call("t", &arguments), "allowed and not denied: {deny} {arguments}");
        }
        let Some(path) = arguments.get("path").and_then(Value::as_str) else { return };
        let (whole, climbs) = meaning(path);
        // The sandbox refuses a path that leaves the folder.
        if whole.starts_with("secrets/") && !climbs {
            assert!(denied.matches_call("t", &arguments), "not denied: {path:?}");
        }
        if allowed.matches_call("t", &arguments) {
            assert!(whole.starts_with("out/") && !path.split('/').any(|part| part == ".."), "allowed: {path:?}");
        }
        let outcome = call(&threads, &runtime, "t", &json!({ "path": path }).to_string()).receipt.outcome;
        assert_eq!(outcome == Outcome::Denied, climbs, "{path:?} ended in {outcome}");
    })
}

/// Resolves a path; the second value is `true` if the path leaves the folder at some point.
fn meaning(path: &str) -> (String, bool) {
    let mut place: Vec<&str> = Vec::new();
    let mut climbs = false;
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            place.push(part);
        } else if place.pop().is_none() {
            climbs = true;
        }
    }
    (place.join("/"), climbs)
}
