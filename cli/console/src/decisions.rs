//! Calls that wait for an answer, and permanent approvals. Answers are stored where `toolcrib approvals` stores them, and by the
//! same code.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::{Map, Value};
use toolcrib::policy::{ApprovalAnswer, Approvals, StoredApproval};
use toolcrib::source::digest;
use toolcrib_base::render::Advice;
use toolcrib_base::short_id;
use toolcrib_settings::permission::{PendingCall, PendingCalls};

use super::content;
use super::layout::{self, MAX_WHOLE, ROWS, facts, hidden};
use super::query::{Query, parameter};
use super::states::word;
use super::table::table;
use super::trust;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const HEADINGS: [&str; 5] = ["Tool", "Rule", "Granted then", "Approved (UTC)", "Take back"];
/// Facts that are shown as they are, over several lines.
const BLOCKS: [&str; 2] = ["Tool says", GRANTED];
/// Facts that a card shows above its buttons: the lines that the call would change, or else its arguments.
const CHANGES: &str = "Changes";
const ARGUMENTS: &str = "Arguments";
/// Facts without which the subject would mislead: they are above the buttons too.
const WARNINGS: [&str; 3] = ["Left out", "Flow", "Reason"];
/// Capabilities of the tool.
const GRANTED: &str = "Granted";

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let calls = pending(views)?.list()?;
    let (waiting, answered): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.answer.is_none());
    let permanent = approvals(views)?.read()?;
    let done = visit.query.get("answered").and_then(short_id::parse);
    let revoked = visit.query.get("revoked").is_some();
    let rows: Vec<[Markup; 5]> = permanent.iter().rev().take(ROWS).map(|one| row(visit, one)).collect();
    let content = html! {
        h1 { "Decisions" }
        @if let Some(id) = done { p.verdict.good role="status" { "Your answer to " code { (id) } " is stored." } }
        @if revoked { p.verdict.good role="status" { "The approval was revoked." } }
        h2 { "Waiting" }
        div id="calls" data-live {
        @if waiting.is_empty() { p.empty { "No call waits for an answer." } }
        @for call in &waiting { (card(visit, call)) }
        @if !answered.is_empty() {
            h2 { "Answered, and not used yet" }
            @for call in &answered { (card(visit, call)) }
        }
        }
        h2 { "Permanent approvals" }
        div id="permanent" data-live {
        @if rows.is_empty() { p.empty { "There are no permanent approvals." } } @else {
            (table("Permanent approvals, newest first", HEADINGS, rows))
        }
        @if permanent.len() > ROWS { p.quiet { code { "toolcrib approvals list" } " lists all " (permanent.len()) "." } }
        }
        div id="trust" data-live {
            @match trust::section(views, visit) {
                Ok(section) => (section),
                // Calls that wait can be decided about all the same.
                Err(error) => { h2 { "Trust" } p.problem { (layout::line(&error.text(), 1_000)) } }
            }
        }
    };
    Ok(Page { title: "Decisions".to_owned(), tab: Tab::Decisions, content })
}

/// Returns the address of a waiting call's card.
pub(super) fn address(id: &str) -> String {
    format!("decisions#{}", label(id))
}

fn label(id: &str) -> String {
    format!("call-{id}")
}

/// Returns the runs that wait for a decision, each with the first call that does; none if they cannot be read, which the page of
/// decisions reports.
pub(super) fn waiting_runs(views: &Views) -> HashMap<String, String> {
    let calls = pending(views).and_then(|calls| calls.list()).unwrap_or_default();
    let waiting = calls.into_iter().rev().filter(|call| call.answer.is_none());
    waiting.filter_map(|call| Some((call.run_id()?, call.id))).collect()
}

/// Shows a call: its subject and the two answers to it first, the other answers and all facts in its details.
fn card(visit: &Visit, call: &PendingCall) -> Markup {
    let label = label(&call.id);
    let is_denied = call.answer.as_ref().is_some_and(|answer| !answer.allowed);
    let mut all: Vec<_> = call.rows();
    let changes = all.iter().find(|(label, _)| *label == CHANGES).cloned();
    let subject = changes.as_ref().map_or(ARGUMENTS, |_| CHANGES);
    let arguments = all.iter().find(|(label, _)| *label == ARGUMENTS).map(|(_, text)| text.clone());
    let warnings: Vec<_> = all.iter().filter(|(label, _)| WARNINGS.contains(label)).cloned().collect();
    let granted = all.iter().find(|(label, _)| *label == GRANTED).cloned();
    all.retain(|(label, _)| *label != subject && !WARNINGS.contains(label));
    let mut details: Vec<_> = all.into_iter().map(fact).collect();
    if let Some(reason) = call.answer.as_ref().and_then(|answer| answer.reason.as_deref()) {
        details.push(("Your reason", layout::line(reason, ApprovalAnswer::MAX_REASON_LEN)));
    }
    details.push(("Until", html! { (layout::moment(&call.expires().to_string())) }));
    details.push(("Call", html! { code { (call.id) } }));
    html! {
        article.card.decision aria-labelledby=(label) {
            h3 id=(label) { (layout::line(call.action.as_ref().unwrap_or(&call.tool), 120)) " " (word(call.state())) }
            p.quiet {
                @match call.run_id() {
                    Some(run) => { "Asked by " a href=(visit.path(&format!("runs/{run}"))) { "run " (run) } },
                    None => { "Asked by " (layout::line(&call.client, 120)) },
                }
                ", " (layout::moment(&call.asked.to_string()))
            }
            @for (label, text) in &warnings { p.warning { strong { (label) ":" } " " (layout::line(text, 600)) } }
            @match changes {
                Some((_, changes)) => {
                    (content::difference(&changes, MAX_WHOLE))
                    // A tool can do something else with an argument that no line shows.
                    @match names(arguments.as_deref()).as_str() {
                        "" => p.quiet { "The arguments are in the details." },
                        names => p.quiet { "From the arguments: " code { (layout::line(names, 300)) } ". They are in the details." },
                    }
                },
                None => (content::exact(&arguments.unwrap_or_default(), MAX_WHOLE)),
            }
            @if let Some((label, text)) = &granted { p.quiet { (label) ": " (layout::line(text, 300)) } }
            @if visit.session.decides() && !is_denied { (answers(visit, call)) }
            details id=(format!("details-{}", call.id)) {
                summary { (if visit.session.decides() && !is_denied { "Details and other answers" } else { "Details" }) }
                @if visit.session.decides() && !is_denied { (further_answers(visit, call)) }
                (facts(details))
            }
        }
    }
}

/// Returns the argument names of a call, as far as they were stored whole.
fn names(arguments: Option<&str>) -> String {
    let read = arguments.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    read.map(|read| read.keys().map(String::as_str).collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

/// Identifier of the form that denies a call.
fn denial(call: &PendingCall) -> String {
    format!("deny-{}", call.id)
}

/// Shows the two answers to a call, or the one that is left.
fn answers(visit: &Visit, call: &PendingCall) -> Markup {
    let waits = if call.until.is_some() { "; the run continues" } else { ", once it is repeated" };
    html! {
        @match call.answer {
            None => form.decide method="post" action=(visit.path("decisions")) {
                (hidden(visit, &[("id", &call.id)]))
                p {
                    button.allow name="answer" value="once" { "Allow once" }
                    button.deny form=(denial(call)) { "Deny" }
                    span.quiet { " this call with these arguments" (waits) }
                }
            },
            Some(_) => p { button.deny form=(denial(call)) { "Deny" } },
        }
    }
}

/// Shows the answers that cover more calls, and the reason of a denial.
fn further_answers(visit: &Visit, call: &PendingCall) -> Markup {
    let (session, always) = (call.session_scope(), call.always_scope());
    let further = [("session", "Allow for the session", &session), ("always", "Always allow", &always)];
    html! {
        @if call.answer.is_none() && (session.is_some() || always.is_some()) {
            form.decide method="post" action=(visit.path("decisions")) {
                (hidden(visit, &[("id", &call.id)]))
                @for (answer, label, scope) in further {
                    @if let Some(scope) = scope {
                        p {
                            button name="answer" value=(answer) { (label) }
                            span.quiet { " " (layout::line(scope, 1_100)) }
                        }
                    }
                }
            }
        }
        // A form of its own: Enter in a field presses the first button of its form.
        form.decide id=(denial(call)) method="post" action=(visit.path("decisions")) {
            (hidden(visit, &[("id", &call.id), ("answer", "no")]))
            p {
                label { "Reason of a denial, for the model (optional)"
                    input name="reason" maxlength=(ApprovalAnswer::MAX_REASON_LEN) autocomplete="off";
                }
                button.deny { "Deny with this reason" }
            }
        }
    }
}

/// Shows a fact of a call.
fn fact((label, text): (&'static str, String)) -> (&'static str, Markup) {
    match label {
        CHANGES => (label, content::difference(&text, MAX_WHOLE)),
        ARGUMENTS => (label, content::exact(&text, MAX_WHOLE)),
        _ if BLOCKS.contains(&label) => (label, layout::block(&text, MAX_WHOLE)),
        _ => (label, layout::line(&text, 1_100)),
    }
}

/// Facts of a call about which a person is asked.
pub(super) fn call_facts(call: &PendingCall) -> Vec<(&'static str, Markup)> {
    call.rows().into_iter().map(fact).collect()
}

fn row(visit: &Visit, one: &StoredApproval) -> [Markup; 5] {
    let granted = if one.granted.is_empty() { "nothing".to_owned() } else { one.granted.join(", ") };
    let label = format!("Revoke the approval of {}", one.tool);
    [
        html! {
            (layout::line(&one.tool, 80))
            @if let Some(client) = one.client.as_ref().or(one.owner.as_ref()) {
                span.quiet { " for " (layout::line(client, 80)) }
            }
            @if one.definition.is_none() { span.quiet { " (of an earlier version; no longer applies)" } }
        },
        layout::line(&one.rule, 120),
        layout::line(&granted, 160),
        layout::time(&one.given.to_string()),
        html! {
            @if visit.session.decides() {
                form method="post" action=(visit.path("decisions/revoke")) {
                    (hidden(visit, &[("approval", &key(one))]))
                    button.deny aria-label=(toolcrib_base::render::one_line(&toolcrib_base::render::shortened(&label, 120))) { "Revoke" }
                }
            } @else { span.quiet { "–" } }
        },
    ]
}

/// Stores a form's answer, and returns the parameters of the page that confirms it.
pub(super) fn answer(views: &Views, form: &Query) -> Result<String, ViewError> {
    let (calls, id) = (pending(views)?, form.get("id").unwrap_or_default());
    let call = match form.get("answer") {
        Some("once") => calls.allow(id, None)?.0,
        Some("session") => calls.allow_session(id)?,
        Some("always") => {
            let allowed = calls.allow(id, Some(&approvals(views)?))?.0;
            views.tools.reload();
            allowed
        }
        Some("no") => calls.deny(id, form.get("reason").unwrap_or_default())?,
        _ => return Err(ViewError::Unknown("The form has no answer.".to_owned())),
    };
    Ok(parameter("answered", &call.id))
}

/// Revokes the permanent approval of a form.
pub(super) fn revoke(views: &Views, form: &Query) -> Result<String, ViewError> {
    let wanted = form.get("approval").unwrap_or_default();
    match approvals(views)?.remove(|one| key(one) == wanted)? {
        0 => Err(ViewError::Unknown("The approval is revoked already.".to_owned())),
        _ => {
            views.tools.reload();
            Ok(parameter("revoked", "1"))
        }
    }
}

/// Digest that names an approval in a form.
fn key(one: &StoredApproval) -> String {
    digest(&serde_json::to_vec(one).unwrap_or_default())
}

fn pending(views: &Views) -> anyhow::Result<PendingCalls> {
    let none = || {
        Advice::new(
            "no file for pending calls: no home directory was found",
            "name one with `--set approvals.pending=FILE`",
        )
    };
    views.kept.pending().ok_or_else(|| none().into())
}

fn approvals(views: &Views) -> anyhow::Result<Approvals> {
    let none = || {
        Advice::new("no file for approvals: no home directory was found", "name one with `--set approvals.file=FILE`")
    };
    views.kept.file().ok_or_else(|| none().into())
}
