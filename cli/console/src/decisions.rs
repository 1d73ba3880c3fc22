//! Calls that wait for an answer, and permanent approvals. Answers are stored where `toolcrib approvals` stores them, and by the
//! same code.

use maud::{Markup, html};
use toolcrib::policy::{ApprovalAnswer, Approvals, StoredApproval};
use toolcrib::source::digest;
use toolcrib_base::render::Advice;
use toolcrib_base::short_id;
use toolcrib_settings::permission::{PendingCall, PendingCalls};

use super::layout::{self, MAX_WHOLE, ROWS, facts, hidden, table, word};
use super::query::{Query, parameter};
use super::trust;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const HEADINGS: [&str; 5] = ["Tool", "Rule", "Granted then", "Approved (UTC)", "Take back"];
/// Facts that are shown as they are, over several lines.
const BLOCKS: [&str; 4] = ["Changes", "Arguments", "Tool says", "Granted"];
/// Facts that a decision rarely depends on.
const DETAILS: [&str; 5] = ["Source", "Fixed", "Tool says", "Properties", "Until"];

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

/// Shows a call with its answers.
fn card(visit: &Visit, call: &PendingCall) -> Markup {
    let label = format!("call-{}", call.id);
    let is_denied = call.answer.as_ref().is_some_and(|answer| !answer.allowed);
    let (session, always) = (call.session_scope(), call.always_scope());
    let waits = if call.until.is_some() { "; the run continues" } else { ", once it is repeated" };
    let mut all = call_facts(call);
    if let Some(reason) = call.answer.as_ref().and_then(|answer| answer.reason.as_deref()) {
        all.push(("Your reason", layout::line(reason, ApprovalAnswer::MAX_REASON_LEN)));
    }
    all.push(("Asked", html! { (layout::time(&call.asked.to_string())) " UTC" }));
    all.push(("Until", html! { (layout::time(&call.expires().to_string())) " UTC" }));
    let (details, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|(label, _)| DETAILS.contains(label));
    let denial = format!("deny-{}", call.id);
    html! {
        article.card aria-labelledby=(label) {
            h3 id=(label) { (layout::line(call.action.as_ref().unwrap_or(&call.tool), 120)) " " (word(call.state())) " " code.quiet { (call.id) } }
            (facts(all))
            details id=(format!("details-{}", call.id)) { summary { "Details" } (facts(details)) }
            @if visit.session.decides() && !is_denied {
                @if call.answer.is_none() {
                    form.decide method="post" action=(visit.path("decisions")) {
                        (hidden(visit, &[("id", &call.id)]))
                        p {
                            button.allow name="answer" value="once" { "Allow once" }
                            button.deny form=(denial) { "Deny" }
                            span.quiet { " this call with these arguments" (waits) }
                        }
                        @for (answer, label, scope) in [("session", "Allow for the session", &session), ("always", "Always allow", &always)] {
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
                form.decide id=(denial) method="post" action=(visit.path("decisions")) {
                    (hidden(visit, &[("id", &call.id), ("answer", "no")]))
                    p {
                        @if call.answer.is_some() { button.deny { "Deny" } }
                        label { "Reason of a denial, for the model (optional)"
                            input name="reason" maxlength=(ApprovalAnswer::MAX_REASON_LEN) autocomplete="off";
                        }
                    }
                }
            }
        }
    }
}

/// Facts of a call about which a person is asked.
pub(super) fn call_facts(call: &PendingCall) -> Vec<(&'static str, Markup)> {
    let shown = |(label, text): (&'static str, String)| match BLOCKS.contains(&label) {
        true => (label, layout::block(&text, MAX_WHOLE)),
        false => (label, layout::line(&text, 1_100)),
    };
    call.rows().into_iter().map(shown).collect()
}

fn row(visit: &Visit, one: &StoredApproval) -> [Markup; 5] {
    let granted = if one.granted.is_empty() { "nothing".to_owned() } else { one.granted.join(", ") };
    let label = format!("Revoke the approval of {}", one.tool);
    [
        html! {
            (layout::line(&one.tool, 80))
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
