//! One logged call: what it was, how it ended, what it was granted, and what it was denied, with the flag that would allow it.

use maud::{Markup, html};
use serde::Deserialize;
use toolcrib::audit::{self, LogEntry};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::counted;
use toolcrib_settings::audit_facts::arguments;
use toolcrib_sources::tool_facts;

use super::content;
use super::layout::{self, MAX_BLOCK, MAX_LISTED, MAX_WHOLE, facts};
use super::states::word;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Records between two looks at the time.
const INTERVAL: usize = 1_000;

/// Facts of a record. Those that the program that wrote it did not know are empty.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Name of the file.
    pub(super) file: String,
    /// Line in the file, counted from 1.
    pub(super) line: u64,
    pub(super) ts: String,
    pub(super) tool: String,
    pub(super) outcome: String,
    pub(super) ms: f64,
    pub(super) granted: Vec<String>,
    pub(super) denied: Vec<Denied>,
    pub(super) more: More,
}

/// Denied capability.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Denied {
    pub(super) capability: String,
    pub(super) flag: Option<String>,
}

/// Facts that only the text of a record has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct More {
    pub(super) call_id: String,
    pub(super) invocation: String,
    /// Invocation of the call that made it.
    pub(super) parent: Option<String>,
    pub(super) door: String,
    caller: Option<String>,
    denied: Vec<Denied>,
    pub(super) decision: Option<Decision>,
    pub(super) waited_ms: f64,
    pub(super) cpu_ms: f64,
    pub(super) peak_memory_bytes: u64,
    fuel: Option<u64>,
    disk_bytes: u64,
    /// Number of parts that the call showed while it ran.
    parts: u64,
    seq: u64,
    chain: String,
}

/// Decision about a call.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Decision {
    behavior: String,
    reason: String,
    rests_on: String,
}

impl Record {
    /// Returns the time of the call without its waits.
    pub(super) fn own_ms(&self) -> f64 {
        own_ms(self.ms, self.more.waited_ms)
    }

    /// Reads the facts of an entry.
    pub(super) fn of(entry: &LogEntry) -> Self {
        let mut more: More = serde_json::from_str(&entry.text).unwrap_or_default();
        let file = entry.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self {
            file,
            line: entry.line,
            ts: entry.ts.clone(),
            tool: entry.tool.clone(),
            outcome: entry.outcome.clone(),
            ms: entry.ms,
            granted: entry.granted.clone(),
            denied: std::mem::take(&mut more.denied),
            more,
        }
    }
}

/// Time and memory that a call used itself, without the other facts of its record.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OwnUse {
    #[serde(skip)]
    pub(super) ms: f64,
    waited_ms: f64,
    pub(super) peak_memory_bytes: u64,
}

impl OwnUse {
    pub(super) fn of(entry: &LogEntry) -> Self {
        let read: Self = serde_json::from_str(&entry.text).unwrap_or_default();
        Self { ms: own_ms(entry.ms, read.waited_ms), ..read }
    }
}

/// Returns the time of a call without its wait for its turn or a person; 0 for times that none has.
fn own_ms(ms: f64, waited: f64) -> f64 {
    let own = ms - waited;
    if own.is_finite() { own.max(0.0) } else { 0.0 }
}

/// Shows the time and the resources of a call.
pub(super) fn usage(record: &Record) -> Markup {
    let More { waited_ms, cpu_ms, peak_memory_bytes, fuel, disk_bytes, parts, .. } = &record.more;
    html! {
        (layout::duration(record.ms))
        span.quiet {
            ", waited " (layout::duration(*waited_ms)) ", computed " (layout::duration(*cpu_ms))
            ", memory " (rounded_size(*peak_memory_bytes))
            @if let Some(fuel) = fuel { ", fuel " (fuel) }
            @if *disk_bytes > 0 { ", wrote " (rounded_size(*disk_bytes)) }
            @if *parts > 0 { ", showed " (counted(*parts, "part")) }
        }
    }
}

/// Returns the address of a record's page.
pub(super) fn address(file: &str, line: u64) -> String {
    format!("calls/{}/{line}", file.trim_end_matches(".log"))
}

/// Shows denied capabilities, each with the flag that would allow it.
pub(super) fn denials(denied: &[Denied], max: usize) -> Markup {
    html! {
        @if denied.is_empty() { span.quiet.none { "–" } } @else {
            ul.plain {
                @for Denied { capability, flag } in denied.iter().take(max) {
                    li {
                        code { (layout::line(capability, 120)) }
                        @if let Some(flag) = flag { span.quiet { " allowed by " } code { (layout::line(flag, 120)) } }
                    }
                }
                @if denied.len() > max { li.quiet { "and " (denied.len() - max) " more" } }
            }
        }
    }
}

/// Shows granted permissions.
pub(super) fn grants(granted: &[String]) -> Markup {
    html! {
        @if granted.is_empty() { "nothing" } @else {
            ul.plain {
                @for one in granted.iter().take(MAX_LISTED) { li { code { (layout::line(one, 300)) } } }
                @if granted.len() > MAX_LISTED { li.quiet { "and " (granted.len() - MAX_LISTED) " more" } }
            }
        }
    }
}

/// Shows a decision in words.
pub(super) fn decision(decision: &Decision) -> Markup {
    let Decision { behavior, reason, rests_on } = decision;
    html! {
        (layout::line(behavior, 40)) ", " (layout::line(in_words(reason), 60))
        @if !rests_on.is_empty() { ": " code { (layout::line(rests_on, 300)) } }
    }
}

/// Returns a decision's reason in words; a name of another version stays as it is.
pub(super) fn in_words(reason: &str) -> &str {
    match reason {
        "default" => "no rule asks about it or denies it",
        "grant" => "not granted",
        "hook-failed" => "a hook failed",
        "once" => "allowed once by the user",
        "session" => "allowed for the session by the user",
        "always" => "always allowed by the user",
        "refused" => "denied by the user",
        "nobody" => "no one answered",
        other => other,
    }
}

pub(super) fn page(views: &Views, visit: &Visit, file: &str, line: &str) -> Result<Page, ViewError> {
    let unknown = || ViewError::Unknown("The log has no readable record at this place.".to_owned());
    let wanted = line.parse::<u64>().map_err(|_| unknown())?;
    let name = format!("{file}.log");
    for (at, entry) in audit::records(&views.audit)?.enumerate() {
        if at % INTERVAL == 0 {
            visit.check_time()?;
        }
        let entry = entry?;
        if entry.line == wanted && entry.file.file_name().is_some_and(|of| of == name.as_str()) {
            return Ok(shown(views, &entry));
        }
    }
    Err(unknown())
}

fn shown(views: &Views, entry: &LogEntry) -> Page {
    let record = Record::of(entry);
    let More { call_id, door, caller, decision: decided, seq, chain, .. } = &record.more;
    let mut all = vec![
        ("Tool", layout::line(&record.tool, 200)),
        ("Outcome", word(&record.outcome)),
        ("Ended", html! { (layout::moment(&record.ts)) }),
        ("Duration", usage(&record)),
    ];
    // The log has no limits: these are of the tool that has this name now, if there is one.
    let runtime = views.tools.runtime().ok();
    if let Some(limits) = runtime.as_ref().and_then(|runtime| runtime.limits(&record.tool)) {
        let note = html! { span.quiet { " of the tool with this name now; the log does not have this call's limits" } };
        all.push(("Limits", html! { (layout::line(&tool_facts::limits(limits), 400)) (note) }));
    }
    all.extend([("Granted", grants(&record.granted)), ("Denied", denials(&record.denied, MAX_LISTED))]);
    all.extend(decided.as_ref().map(|decided| ("Decision", decision(decided))));
    all.extend([
        (
            "Called by",
            html! { (layout::line(door, 40)) @if let Some(caller) = caller { ", " (layout::line(caller, 200)) } },
        ),
        ("Call", html! { code { (layout::line(call_id, 100)) } }),
        ("Place", html! { (layout::line(&record.file, 40)) ":" (record.line) ", record " (seq) }),
        ("Chain", html! { code { (layout::line(chain, 80)) } }),
    ]);
    let content = html! {
        h1 { "Call of " (layout::line(&record.tool, 80)) }
        (facts(all))
        h2 { "Arguments" }
        (content::shown(&arguments(&entry.arguments), MAX_BLOCK))
        details { summary { "The record as it is in the log" } (layout::block(&entry.text, MAX_WHOLE)) }
    };
    Page { title: "Call".to_owned(), tab: Tab::Calls, content }
}
