//! The page of a call that is tried: its preview with the button that lets it go on, its progress, and its result.

use maud::{Markup, html};
use toolcrib_settings::permission::PendingCall;
use toolcrib_sources::tool_facts;

use super::super::content;
use super::super::decisions::call_facts;
use super::super::layout::{self, MAX_WHOLE, duration, facts, hidden};
use super::super::query::parameter;
use super::super::record::grants;
use super::super::states::word;
use super::super::view::Views;
use super::super::visit::{Page, Tab, ViewError, Visit};
use super::desk::{FORM_PAGE, ID, PAGE, QuestionKind, State, Trial};
use super::entry;
use super::outcome::decided;

pub(crate) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let id = visit.query.get(ID).unwrap_or_default();
    let Some(trial) = views.trials.find(id) else {
        return Err(ViewError::Unknown("No call has this address: the console keeps the latest ones.".to_owned()));
    };
    let outcome = trial.state().outcome.clone();
    if let Some(message) =
        outcome.as_ref().filter(|shown| shown.has_wrong_arguments()).and_then(|it| it.wrong_arguments.as_ref())
    {
        return entry::again(views, visit, &trial, message);
    }
    let name = &trial.call.name;
    let content = html! {
        h1 { "Call of " (layout::link(&visit.path("tool"), "name", name, &layout::line(name, 120))) }
        @match outcome {
            Some(shown) => {
                (shown.page(visit, &trial.call.id))
                h2 { "Arguments" }
                (content::shown(&trial.call.arguments, MAX_WHOLE))
            }
            None => (underway(visit, &trial)),
        }
        p { a href=(change(visit, &trial)) { "Change the arguments" } " " a href={ (visit.path("tool")) (parameter("name", name)) } { "The tool" } }
    };
    Ok(Page { title: "Call".to_owned(), tab: Tab::Tools, content })
}

/// Address of the form with a call's arguments.
fn change(visit: &Visit, trial: &Trial) -> String {
    let name = parameter("name", &trial.call.name);
    format!("{}{name}&from={}", visit.path(FORM_PAGE), trial.id)
}

/// Shows a call that has not ended.
fn underway(visit: &Visit, trial: &Trial) -> Markup {
    let state = trial.state();
    let is_stopped = trial.stop.is_cancelled();
    let again = html! { a href={ (visit.path(PAGE)) (parameter(ID, &trial.id)) } { "Show its state now" } };
    html! {
        @match trial.question(&state) {
            Some(question) => (asked(visit, trial, &state, question.number, &question.kind)),
            None => {
                p role="status" {
                    (word("running")) " "
                    @match state.started {
                        _ if is_stopped => "It is being stopped.",
                        Some(since) => { "for " (duration(since.elapsed().as_secs_f64() * 1_000.0))
                            @if state.parts > 0 { ", " (state.parts) " parts so far" } }
                        None => "It is being prepared.",
                    }
                }
                p { (again) }
                @if !is_stopped {
                    form.decide method="post" action=(visit.path(PAGE)) {
                        (hidden(visit, &[(ID, &trial.id)]))
                        p { button.deny name="do" value="stop" { "Stop the call" } }
                    }
                }
                h2 { "Arguments" }
                (content::shown(&trial.call.arguments, MAX_WHOLE))
            }
        }
    }
}

/// Shows what a call would do, with the buttons that let it go on or end it.
fn asked(visit: &Visit, trial: &Trial, state: &State, number: u64, kind: &QuestionKind) -> Markup {
    let number = number.to_string();
    let (label, note, shown) = match kind {
        QuestionKind::Asked(call, _) => {
            ("Allow once and call", "This is your answer for this one call.", asked_facts(call))
        }
        QuestionKind::Held(_) => {
            let note = "Only hooks, validation and preview have run.";
            ("Make this call", note, held_facts(trial, state))
        }
    };
    html! {
        article.card aria-labelledby="preview" {
            h2 id="preview" { "Preview" }
            (shown)
            @if visit.session.decides() {
                form.decide method="post" action=(visit.path(PAGE)) {
                    (hidden(visit, &[(ID, &trial.id), ("question", &number)]))
                    p { button.allow name="do" value="go" { (label) } span.quiet { (note) } }
                    p { button.deny name="do" value="no" { "Do not call" } }
                }
            }
        }
    }
}

/// Facts of a call about which a rule or its tool asks, as approvals show them.
fn asked_facts(call: &PendingCall) -> Markup {
    let mut all = vec![("Decision", html! { (word("ask")) " " code { (layout::line(&call.rests_on, 300)) } })];
    all.extend(call_facts(call));
    facts(all)
}

/// Facts of a call that is allowed without a question.
fn held_facts(trial: &Trial, state: &State) -> Markup {
    let arguments = state.arguments.as_deref().unwrap_or(&trial.call.arguments);
    let mut all: Vec<(&str, Markup)> = Vec::new();
    all.extend(state.decision.as_ref().map(|decision| ("Decision", decided(decision))));
    all.push(("Arguments", content::shown(arguments, MAX_WHOLE)));
    if let Some(preview) = &state.preview {
        all.push(("Tool says", layout::block(preview, MAX_WHOLE)));
    }
    // From the tools among which it runs, which may have been loaded anew since.
    let runtime = state.runtime.as_deref();
    if let Some((runtime, tool)) = runtime.and_then(|runtime| Some((runtime, runtime.tool(&trial.call.name)?))) {
        all.push(("Granted", grants(&tool_facts::granted(runtime, tool))));
    }
    if let Some(limits) = runtime.and_then(|runtime| runtime.limits(&trial.call.name)) {
        all.push(("Limits", layout::line(&tool_facts::limits(limits), 400)));
    }
    facts(all)
}
