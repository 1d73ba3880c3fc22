//! One kept run: its conversation, with the calls of each answer, their results, and what the audit log says about them.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use toolcrib_agent::message::{Message, Role};
use toolcrib_agent::runs::{KeptRun, RunStore};
use toolcrib_agent::turn::Call;
use toolcrib_base::render::counted;

use super::content;
use super::decisions;
use super::layout::{self, MAX_BLOCK, facts};
use super::logged::{Logged, Nested};
use super::markdown;
use super::parts::{PartView, Room};
use super::query::parameter;
use super::record::{Record, address, decision, denials, grants, usage};
use super::runs;
use super::start;
use super::states::word;
use super::timeline::Timeline;
use super::units::Unit;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Maximum messages on one page.
const MAX_MESSAGES: usize = 100;
/// Maximum characters of all messages on one page; the page ends with the message that exceeds it.
const MAX_TEXT: usize = 400_000;
/// Maximum calls of one message that are shown.
const MAX_CALLS: usize = 50;
/// Maximum pictures on one page.
const MAX_PICTURES: usize = 12;
/// Maximum denials of a call, and calls that a tool made, that are listed.
const MAX_DENIALS: usize = 20;

/// Parts that calls showed to people, by the identifiers of the calls.
type Parts = HashMap<String, Vec<PartView>>;

pub(super) fn page(views: &Views, visit: &Visit, id: &str) -> Result<Page, ViewError> {
    let known = RunStore::parse(id).ok().filter(|id| views.runs.path(id).is_file());
    let Some(known) = known else { return Err(ViewError::Unknown("No saved run has this ID.".to_owned())) };
    let run = views.runs.read(&known)?;
    let from = visit.query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0).min(run.messages.len());
    let until = end_of_page(&run.messages, from);
    let shown = &run.messages[from..until];
    let logged = Logged::read(views, visit, &run, shown)?;
    let results: HashMap<&str, &Message> =
        shown.iter().filter_map(|message| Some((message.answered_call()?, message))).collect();
    let made: HashSet<String> = shown.iter().flat_map(Message::calls).map(|call| call.id).collect();
    let is_orphan = |message: &Message| message.answered_call().is_none_or(|id| !made.contains(id));
    let is_last = until == run.messages.len();
    let pending = || run.pending.iter().map(|call| (call, "not made yet"));
    let open = || pending().chain(run.open.iter().map(|(call, state)| (call, state.in_words())));
    let states: HashMap<&str, &str> = open().map(|(call, state)| (call.id.as_str(), state)).collect();
    let mut room = Room { pictures: MAX_PICTURES, text: MAX_TEXT };
    let mut parts = Parts::new();
    for id in shown.iter().flat_map(Message::calls).map(|call| call.id) {
        let kept = run.shown.get(&id).into_iter().flatten();
        let views: Vec<_> = kept.map(|part| PartView::of_kept(part, &mut room)).collect();
        parts.insert(id, views);
    }
    let mut timeline = Timeline::default();
    for (at, message) in (from..).zip(shown) {
        for (number, call) in message.calls().iter().take(MAX_CALLS).enumerate() {
            timeline.add(&format!("#{}", anchor(at, number)), logged.of(call));
            let nested = logged.nested(call);
            for record in nested.records {
                timeline.add_nested(&visit.path(&address(&record.file, record.line)), record);
            }
            timeline.leave_out(nested.left_out);
        }
    }
    timeline.unread(logged.unread());
    let waiting = decisions::waiting_runs(views).remove(&run.header.id);
    let title = run.figures.title.clone().unwrap_or_else(|| "Run".to_owned());
    let content = html! {
        div.head {
            h1 { (layout::line(&title, 160)) }
            a.action href=(visit.path(&format!("runs/{id}/export"))) download { "Export as JSON" }
        }
        div id="head" data-live {
            @if let Some(call) = &waiting {
                p.verdict.doubt { "This run waits for your decision. " a href=(visit.path(&decisions::address(call))) { "Decide" } }
            }
            (head(visit, &run, waiting.as_ref()))
        }
        (start::kept_run(views, visit, &run.header, &run.state))
        div id="timeline" data-live { (timeline.show()) }
        h2 { "Conversation" }
        @if from > 0 { (turn(visit, id, from.saturating_sub(MAX_MESSAGES), "Earlier messages")) }
        ol.talk id="talk" data-live {
            @for (at, message) in (from..).zip(shown).filter(|(_, message)| is_orphan(message)) {
                li { (self::message(visit, (at, message), (&results, &states, &parts), &logged)) }
            }
            @if is_last {
                @for (call, state) in open().filter(|(call, _)| !made.contains(&call.id)) {
                    li { (one_call(visit, call, None, html! { (state) }, None, &[])) }
                }
                @if !run.arriving.is_empty() {
                    li { h3 { "Model " (word("running")) } (layout::block(&run.arriving, MAX_BLOCK)) }
                }
            }
        }
        div id="later" data-live { @if !is_last { (turn(visit, id, until, "Later messages")) } }
    };
    Ok(Page { title: "Run".to_owned(), tab: Tab::Runs, content })
}

fn turn(visit: &Visit, id: &str, from: usize, label: &str) -> Markup {
    html! {
        nav.pager aria-label=(label) {
            a href=(visit.path(&format!("runs/{id}{}", parameter("from", &from.to_string())))) { (label) }
        }
    }
}

/// Returns the end of a page that begins with a message: an answer stays with its calls' results.
fn end_of_page(messages: &[Message], from: usize) -> usize {
    let (mut text, mut end) = (0, from);
    for message in &messages[from..] {
        let is_full = end - from >= MAX_MESSAGES || text >= MAX_TEXT;
        if is_full && message.role != Role::Tool {
            break;
        }
        let calls = message.calls();
        let arguments: usize = calls.iter().take(MAX_CALLS).map(|call| call.arguments.len().min(MAX_BLOCK)).sum();
        text += message.shown_text().len().min(MAX_BLOCK) + arguments;
        end += 1;
    }
    end
}

fn head(visit: &Visit, run: &KeptRun, waiting: Option<&String>) -> Markup {
    let KeptRun { header, figures, state, changes, .. } = run;
    let mut all = vec![
        ("State", runs::state(visit, state.as_str(), waiting)),
        ("Started", html! { (layout::moment(&header.created.to_string())) " by " (layout::line(&header.door, 40)) }),
        ("Model", layout::line(&header.model, 120)),
        ("Folder", html! { code { (layout::line(&header.folder, 300)) } }),
        (
            "Length",
            html! {
                (counted(figures.steps, "step")) ", " (counted(figures.calls, "call"))
                @if let Some(ms) = figures.ms { ", " (layout::duration(ms as f64)) }
                @if let Some(usage) = figures.usage { ", " (usage.prompt_tokens) " + " (usage.completion_tokens) " tokens" }
                @if let Some(cost) = figures.cost.filter(|_| figures.usage.is_some()) { ", cost " (Unit::of_costs([cost]).show(cost)) }
            },
        ),
        ("Run", html! { code { (header.id) } }),
    ];
    if let Some(parent) = header.parent.as_deref().and_then(|parent| RunStore::parse(parent).ok()) {
        let path = visit.path(&format!("runs/{parent}"));
        all.push(("Forked from", html! { a href=(path) { code { (parent) } } }));
    }
    if !changes.is_empty() {
        let listed = html! {
            ul.plain {
                @for (_, change) in changes.iter().take(MAX_CALLS) { li { (layout::line(change, 200)) } }
                @if changes.len() > MAX_CALLS { li.quiet { "and " (changes.len() - MAX_CALLS) " more" } }
            }
        };
        all.push(("May have changed", listed));
    }
    facts(all)
}

/// Returns the identifier of a call in the page, by its message's number and its own.
fn anchor(message: usize, call: usize) -> String {
    format!("call-{message}-{call}")
}

fn message(
    visit: &Visit,
    (at, message): (usize, &Message),
    (results, states, parts): (&HashMap<&str, &Message>, &HashMap<&str, &str>, &Parts),
    logged: &Logged,
) -> Markup {
    let author = match message.role {
        Role::System | Role::Developer => "System",
        Role::User => "User",
        Role::Assistant => "Model",
        Role::Tool => "Result",
    };
    let (text, calls) = (message.shown_text(), message.calls());
    html! {
        h3 { (author) }
        @if message.role == Role::System || message.role == Role::Developer {
            details { summary { "Show the instructions" } (layout::block(&text, MAX_BLOCK)) }
        } @else if message.role == Role::Assistant && !text.is_empty() {
            (markdown::shown(&text, MAX_BLOCK))
        } @else if !text.is_empty() {
            (layout::block(&text, MAX_BLOCK))
        }
        @for (number, call) in calls.iter().take(MAX_CALLS).enumerate() {
            @let result = results.get(call.id.as_str()).map(|result| result.shown_text());
            @let state = states.get(call.id.as_str()).filter(|_| result.is_none());
            @let about = match state {
                Some(state) => html! { (state) },
                None => logged_in_words(visit, call, logged),
            };
            @let shown = result.as_ref().and_then(|_| parts.get(&call.id)).map(Vec::as_slice).unwrap_or_default();
            (one_call(visit, call, Some(&anchor(at, number)), about, result.as_deref(), shown))
        }
        @if calls.len() > MAX_CALLS { p.quiet { "and " (calls.len() - MAX_CALLS) " more calls" } }
    }
}

/// Shows a call with its state or its record, and its result.
fn one_call(
    visit: &Visit,
    call: &Call,
    anchor: Option<&str>,
    about: Markup,
    result: Option<&str>,
    shown: &[PartView],
) -> Markup {
    let name = layout::line(&call.name, 120);
    html! {
        section.call id=[anchor] tabindex=[anchor.map(|_| "-1")] {
            h4 { "Call of " (layout::link(&visit.path("tool"), "name", &call.name, &name)) }
            (content::shown(&call.arguments, MAX_BLOCK))
            div.about { (about) }
            @if let Some(result) = result {
                @if !shown.is_empty() {
                    h5 { "Shown to the user" }
                    @for part in shown { (part.shown()) }
                }
                h5 { "Result" }
                @if result.is_empty() { p.quiet { "empty" } } @else { (content::shown(result, MAX_BLOCK)) }
            }
        }
    }
}

/// Shows what the audit log says about a call.
fn logged_in_words(visit: &Visit, call: &Call, logged: &Logged) -> Markup {
    let show = html! { "show them" };
    html! {
        @match logged.of(call) {
            [record] => {
                @let nested = logged.nested(call);
                @let calls = (!nested.records.is_empty()).then(|| ("It called", nested_calls(visit, &nested)));
                (facts(of_record(visit, record).into_iter().chain(calls).collect()))
            }
            [] => p.quiet { "The audit log has no record of this call." },
            several => p.quiet {
                (several.len()) " audit records share this call ID: "
                (layout::link(&visit.path("calls"), "q", &call.id, &show))
            },
        }
    }
}

/// Lists the calls that a tool made.
fn nested_calls(visit: &Visit, nested: &Nested<'_>) -> Markup {
    let more = nested.records.len().saturating_sub(MAX_DENIALS) + nested.left_out;
    html! {
        ul.plain {
            @for record in nested.records.iter().take(MAX_DENIALS) {
                li {
                    (layout::line(&record.tool, 120)) " " (word(&record.outcome)) " in " (usage(record)) " "
                    a href=(visit.path(&address(&record.file, record.line))) { "record" }
                }
            }
            @if more > 0 { li.quiet { "and " (more) " more" } }
        }
    }
}

fn of_record<'a>(visit: &Visit, record: &Record) -> Vec<(&'a str, Markup)> {
    let path = visit.path(&address(&record.file, record.line));
    let mut all = vec![
        ("Outcome", html! { (word(&record.outcome)) " in " (usage(record)) " " a href=(path) { "record" } }),
        ("Granted", grants(&record.granted)),
    ];
    if !record.denied.is_empty() {
        all.push(("Denied", denials(&record.denied, MAX_DENIALS)));
    }
    all.extend(record.more.decision.as_ref().map(|decided| ("Decision", decision(decided))));
    all
}
