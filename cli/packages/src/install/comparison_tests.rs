//! Table of update cases, with the verdict on each.

use std::time::Duration;

use jiff::Timestamp;

use super::comparison::{Candidate, Case, Change, Operation, Verdict};
use super::lock::{Lock, LockedBundle, LockedTool};
use super::refusal::Code;

const DAY: Duration = Duration::from_hours(24);
const SOURCE: &str = "oci://registry.example/acme/weather:1";

fn digest(of: &str) -> String {
    toolcrib::source::digest(of.as_bytes())
}

fn tool(name: &str, description: &str) -> LockedTool {
    LockedTool {
        name: name.to_owned(),
        description: digest(description),
        schema: digest("{}"),
        definition: digest(description),
        requests: Vec::new(),
    }
}

/// Installed release: signed, with one granted and one declined request.
fn installed() -> LockedBundle {
    LockedBundle {
        name: "weather".to_owned(),
        source: SOURCE.to_owned(),
        version: Some("1.2.0".to_owned()),
        digest: digest("1.2.0"),
        signers: vec!["key:acme".to_owned()],
        granted: vec!["net:api.example:443".to_owned()],
        declined: vec!["env:TOKEN".to_owned()],
        tools: vec![tool("forecast", "rain"), tool("now", "sun")],
    }
}

/// Next release, with another program and nothing else that is new.
fn next() -> Candidate {
    let bundle = LockedBundle {
        version: Some("1.3.0".to_owned()),
        digest: digest("1.3.0"),
        granted: Vec::new(),
        declined: Vec::new(),
        ..installed()
    };
    let requests = vec!["env:TOKEN".to_owned(), "net:api.example:443".to_owned()];
    Candidate { bundle, requests }
}

fn now() -> Timestamp {
    "2026-06-10T12:00:00Z".parse().unwrap()
}

/// Parts of a case that the table changes.
struct Parts {
    operation: Operation,
    candidate: Candidate,
    pinned: Option<LockedBundle>,
    locked: Option<LockedBundle>,
    others: Vec<LockedBundle>,
    first_seen: Timestamp,
    accepted: Vec<Code>,
}

impl Parts {
    fn new() -> Self {
        let (pinned, locked) = (Some(installed()), Some(installed()));
        let first_seen = "2026-06-01T12:00:00Z".parse().unwrap();
        let (others, accepted) = (Vec::new(), Vec::new());
        Self { operation: Operation::Update, candidate: next(), pinned, locked, others, first_seen, accepted }
    }

    fn case(&self) -> Case<'_> {
        let Self { operation, candidate, pinned, locked, others, first_seen, accepted } = self;
        Case {
            operation: *operation,
            candidate,
            pinned: pinned.as_ref(),
            locked: locked.as_ref(),
            others,
            beside: &[],
            conflict: None,
            has_other_signers: false,
            first_seen: *first_seen,
            now: now(),
            min_age: DAY,
            accepted,
            is_global: false,
        }
    }

    fn verdict(&self) -> Verdict {
        self.case().verdict()
    }
}

/// Change of a case, and its verdict: name, codes of changes and refusals, and the first cure.
type Row = (&'static str, fn(&mut Parts), &'static str, &'static [&'static str], Option<(Code, &'static str)>);

const ROWS: [Row; 12] = [
    (
        "new capability",
        |parts| parts.candidate.requests.push("write:/home".to_owned()),
        "review",
        &["new-capability", "version"],
        None,
    ),
    (
        "description only",
        |parts| parts.candidate.bundle.tools[0].description = digest("snow"),
        "review",
        &["description-changed", "version"],
        None,
    ),
    (
        "schema only",
        |parts| parts.candidate.bundle.tools[1].schema = digest("[]"),
        "review",
        &["schema-changed", "version"],
        None,
    ),
    (
        "new signer",
        |parts| parts.candidate.bundle.signers = vec!["key:other".to_owned()],
        "refused",
        &["added-signer", "version"],
        Some((Code::SignerChanged, "toolcrib update weather --accept=signer-changed")),
    ),
    (
        "dropped signature",
        |parts| parts.candidate.bundle.signers.clear(),
        "refused",
        &["version"],
        Some((Code::SignatureMissing, "toolcrib update weather --accept=signature-missing")),
    ),
    (
        "downgrade",
        |parts| parts.candidate.bundle.version = Some("1.1.9".to_owned()),
        "refused",
        &["version"],
        Some((Code::Downgrade, "toolcrib update weather --accept=downgrade")),
    ),
    (
        "renamed tool",
        |parts| parts.candidate.bundle.tools[1].name = "today".to_owned(),
        "review",
        &["renamed-tool", "version"],
        None,
    ),
    (
        "name taken over",
        |parts| {
            parts.operation = Operation::Install;
            parts.candidate.bundle.source = "oci://registry.example/evil/weather:1".to_owned();
        },
        "refused",
        &["version"],
        Some((Code::NameTaken, "toolcrib install oci://registry.example/evil/weather:1 --accept=name-taken")),
    ),
    (
        "too young",
        |parts| parts.first_seen = "2026-06-10T11:00:00Z".parse().unwrap(),
        "refused",
        &["version"],
        Some((Code::TooYoung, "toolcrib update weather --min-age=0")),
    ),
    (
        "wrong digest",
        |parts| {
            parts.operation = Operation::Locked;
            parts.candidate.bundle.digest = digest("other");
        },
        "refused",
        &["version"],
        Some((Code::WrongDigest, "toolcrib update weather")),
    ),
    (
        "lock regenerated",
        |parts| {
            parts.locked = None;
            parts.candidate.bundle.signers = vec!["key:other".to_owned()];
        },
        "refused",
        &["added-signer", "version"],
        Some((Code::SignerChanged, "toolcrib update weather --accept=signer-changed")),
    ),
    (
        "tag moved",
        |parts| parts.candidate.bundle.version = Some("1.2.0".to_owned()),
        "refused",
        &[],
        Some((Code::TagMoved, "toolcrib update weather --accept=tag-moved")),
    ),
];

fn codes(verdict: &Verdict) -> Vec<String> {
    let code = |change| serde_json::to_value(change).unwrap()["code"].as_str().unwrap().to_owned();
    verdict.changes.iter().map(code).collect()
}

#[test]
fn every_update_case_has_its_verdict_code_and_cure() {
    for (name, change, verdict, changes, refusal) in ROWS {
        let mut parts = Parts::new();
        change(&mut parts);
        let found = parts.verdict();
        assert_eq!(
            (found.as_str(), codes(&found)),
            (verdict, changes.iter().map(ToString::to_string).collect()),
            "{name}"
        );
        let first = found.refusals.first().map(|refusal| (refusal.code, refusal.cure.as_str()));
        assert_eq!(first, refusal, "{name}: {found:?}");
        assert!(found.refusals.len() <= 1 || name == "wrong digest", "{name}: {found:?}");
    }
}

#[test]
fn a_release_with_nothing_new_needs_no_review() {
    let parts = Parts::new();
    let verdict = parts.verdict();
    assert_eq!((verdict.as_str(), codes(&verdict)), ("ready", vec!["version".to_owned()]));
    let entry = parts.case().entry(&["net:api.example:443".to_owned(), "write:/".to_owned()]);
    assert_eq!(
        (entry.granted, entry.declined),
        (installed().granted, installed().declined),
        "only requests are granted"
    );
}

#[test]
fn another_part_of_a_definition_needs_a_review() {
    let mut parts = Parts::new();
    parts.candidate.bundle.tools[0].definition = digest("approved by nobody");
    let verdict = parts.verdict();
    assert_eq!(verdict.as_str(), "review");
    assert_eq!(codes(&verdict), ["definition-changed", "version"]);
}

#[test]
fn an_overridden_refusal_still_needs_a_review() {
    let mut parts = Parts::new();
    parts.candidate.bundle.signers = vec!["key:other".to_owned()];
    parts.accepted = vec![Code::SignerChanged];
    let verdict = parts.verdict();
    assert_eq!((verdict.as_str(), verdict.overridden), ("review", vec![Code::SignerChanged]));
    assert_eq!(parts.case().entry(&[]).signers, ["key:other"]);
    parts.accepted = vec![Code::Downgrade];
    assert_eq!(parts.verdict().as_str(), "refused", "another refusal was overridden");
}

#[test]
fn a_second_signer_is_shown_and_not_pinned() {
    let mut parts = Parts::new();
    parts.candidate.bundle.signers.push("key:second".to_owned());
    assert_eq!(parts.verdict().as_str(), "ready");
    assert_eq!(parts.case().entry(&[]).signers, ["key:acme"]);
    parts.pinned.as_mut().unwrap().signers.clear();
    assert_eq!(parts.case().entry(&[]).signers, ["key:acme", "key:second"], "the first signature is pinned");
}

#[test]
fn a_lock_alone_pins_signers_and_version_and_grants_nothing() {
    let mut parts = Parts::new();
    parts.pinned = None;
    let verdict = parts.verdict();
    assert_eq!(verdict.as_str(), "review");
    assert_eq!(codes(&verdict).iter().filter(|code| *code == "new-capability").count(), 2, "{verdict:?}");
    parts.candidate.bundle.signers = vec!["key:other".to_owned()];
    assert_eq!(parts.verdict().refusals[0].code, Code::SignerChanged);
    parts = Parts { operation: Operation::Locked, pinned: None, ..Parts::new() };
    parts.candidate.bundle.digest = installed().digest;
    parts.candidate.bundle.version = installed().version;
    assert_eq!(parts.verdict().as_str(), "review");
}

#[test]
fn the_age_of_a_release_counts_from_the_moment_at_which_the_user_first_saw_it() {
    let age = |first_seen: &str| {
        let mut parts = Parts::new();
        parts.first_seen = first_seen.parse().unwrap();
        parts.verdict().refusals.is_empty()
    };
    assert!(age("2026-06-01T00:00:00Z") && !age("2026-06-10T11:59:59Z"));
    assert!(age("2026-06-09T12:00:00Z") && !age("2026-06-09T12:00:01Z"));
    assert!(!age("2027-01-01T00:00:00Z"), "a clock that was set back");
}

#[test]
fn a_program_that_changes_is_reviewed_unless_a_pinned_signer_signed_it() {
    let parts = Parts::new();
    assert_eq!(parts.verdict().as_str(), "ready", "signed by the pinned signer");
    let mut locked = Parts { operation: Operation::Locked, ..Parts::new() };
    locked.locked = Some(LockedBundle { granted: installed().granted, ..next().bundle });
    assert_eq!(locked.verdict().as_str(), "review", "somebody edited the lock");
    let mut unsigned = Parts::new();
    for entry in [&mut unsigned.pinned, &mut unsigned.locked] {
        *entry = Some(LockedBundle { signers: Vec::new(), ..installed() });
    }
    unsigned.candidate.bundle.signers.clear();
    assert_eq!(unsigned.verdict().as_str(), "review");
}

#[test]
fn a_permission_that_moves_to_another_tool_is_shown_and_reviewed() {
    let mut parts = Parts::new();
    let [forecast, now] = &mut parts.candidate.bundle.tools[..] else { panic!("two tools") };
    forecast.requests = vec!["net:api.example:443".to_owned()];
    now.description = digest("sun, and rain");
    now.requests = vec!["net:api.example:443".to_owned()];
    let pinned = parts.pinned.as_mut().unwrap();
    pinned.tools[0].requests = vec!["net:api.example:443".to_owned()];
    let verdict = parts.verdict();
    let moved = Change::NewUse { tool: "now".to_owned(), capability: "net:api.example:443".to_owned() };
    assert!(verdict.changes.contains(&moved) && verdict.as_str() == "review", "{verdict:?}");
    assert_eq!(codes(&verdict).iter().filter(|code| *code == "new-use").count(), 1, "{verdict:?}");
}

#[test]
fn the_name_of_a_tool_belongs_to_the_first_bundle_that_has_it() {
    let mut parts = Parts::new();
    parts.others = vec![LockedBundle { name: "clock".to_owned(), ..installed() }];
    let refusal = parts.verdict().refusals.remove(0);
    assert_eq!((refusal.code, refusal.cure.as_str()), (Code::ToolTaken, "toolcrib remove clock"));
    let others = std::mem::take(&mut parts.others);
    let case = Case { beside: &others, ..parts.case() };
    assert_eq!(case.verdict().refusals[0].cure, "toolcrib remove clock --global");
    let own = [LockedBundle { name: "weather".to_owned(), ..installed() }];
    assert!(Case { beside: &own, ..parts.case() }.verdict().refusals.is_empty(), "replaced in the folder");
    let case = Case { conflict: Some("tool `now` is defined twice"), ..parts.case() };
    let refusal = case.verdict().refusals.remove(0);
    assert_eq!((refusal.code, refusal.cure.as_str()), (Code::ToolTaken, "toolcrib list"));
}

#[test]
fn bundles_with_other_tools_can_have_two_names() {
    let mut parts = Parts::new();
    parts.operation = Operation::Install;
    parts.candidate.bundle.source = "oci://registry.example/evil/weather:1".to_owned();
    parts.candidate.bundle.tools = vec![tool("other", "something else")];
    let refusal = parts.verdict().refusals.remove(0);
    assert_eq!(refusal.code, Code::NameTaken);
    assert!(refusal.cure.ends_with("--name=weather-2"), "{refusal:?}");
}

#[test]
fn a_release_that_only_a_stranger_signed_says_so() {
    let mut parts = Parts::new();
    parts.candidate.bundle.signers.clear();
    let case = Case { has_other_signers: true, ..parts.case() };
    let refusal = case.verdict().refusals.remove(0);
    assert_eq!(refusal.code, Code::SignatureMissing);
    assert!(refusal.message.ends_with("is signed, but by no signer whom you trust"), "{refusal:?}");
}

#[test]
fn a_renamed_tool_with_another_definition_is_both() {
    let mut parts = Parts::new();
    let tool = &mut parts.candidate.bundle.tools[0];
    (tool.name, tool.definition) = ("outlook".to_owned(), digest("approved by nobody"));
    assert_eq!(codes(&parts.verdict()), ["renamed-tool", "definition-changed", "version"]);
}

#[test]
fn another_tag_is_the_same_source_and_another_repository_is_not() {
    for (source, is_same) in [
        ("oci://registry.example/acme/weather:2", true),
        ("oci://registry.example/acme/weather", true),
        (&format!("oci://registry.example/acme/weather:2@{}", digest("")), true),
        ("oci://registry.example:5000/acme/weather:1", false),
        ("oci://registry.example/acme/weather2:1", false),
        ("./weather.tar", false),
    ] {
        let mut parts = Parts { operation: Operation::Install, ..Parts::new() };
        parts.candidate.bundle.source = source.to_owned();
        assert_eq!(parts.verdict().refusals.is_empty(), is_same, "{source}");
    }
}

#[test]
fn an_installed_release_has_no_changes_and_restores_its_entry_in_a_new_lock() {
    let mut parts = Parts::new();
    parts.candidate.bundle = LockedBundle { granted: Vec::new(), declined: Vec::new(), ..installed() };
    parts.first_seen = now();
    assert_eq!(parts.verdict().as_str(), "installed");
    parts.locked = None;
    let verdict = parts.verdict();
    assert_eq!((verdict.as_str(), verdict.changes.len()), ("ready", 0));
    parts.candidate.bundle.signers.push("key:second".to_owned());
    let entry = parts.case().entry(&installed().granted);
    assert_eq!(entry, installed(), "the pins come from the user's records");
    parts.candidate.bundle.signers.clear();
    assert_eq!(parts.verdict().as_str(), "ready", "this content was agreed to");
    assert_eq!(parts.case().entry(&installed().granted), entry, "and its pins stay");
    let mut lock = Lock::default();
    lock.insert(entry);
    assert_eq!(Lock::parse("l", &lock.text()).unwrap().bundles, [installed()]);
}

#[test]
fn an_edited_lock_is_refused_until_its_content_is_reviewed() {
    let mut parts = Parts::new();
    parts.locked.as_mut().unwrap().digest = digest("edited");
    let refusal = parts.verdict().refusals.remove(0);
    let cure = "toolcrib update weather --accept=wrong-digest";
    assert_eq!((refusal.code, refusal.cure.as_str()), (Code::WrongDigest, cure));
    parts.locked.as_mut().unwrap().digest = parts.candidate.bundle.digest.clone();
    assert_eq!(parts.verdict().refusals[0].cure, "toolcrib install", "the lock names this very release");
}

#[test]
fn signers_that_only_a_lock_names_are_not_pinned() {
    let mut parts = Parts { operation: Operation::Locked, pinned: None, ..Parts::new() };
    let locked = parts.locked.as_mut().unwrap();
    locked.signers.push("key:stranger".to_owned());
    locked.digest = parts.candidate.bundle.digest.clone();
    assert_eq!(parts.case().entry(&[]).signers, ["key:acme"], "the verified one");
    parts.candidate.bundle.signers.clear();
    assert_eq!(parts.case().entry(&[]).signers, [""; 0]);
}
