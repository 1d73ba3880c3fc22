//! Forms that start, resume and stop runs, in the sessions of the link for it.

use maud::{Markup, html};
use toolcrib_agent::runs::{Header, RunState, RunStore};
use toolcrib_base::render::Advice;

use super::launcher::{LaunchOptions, Launcher};
use super::layout::{hidden, plain};
use super::query::Query;
use super::view::Views;
use super::visit::{ViewError, Visit};

/// Addresses of these forms.
pub(super) const START: &str = "runs/start";
const RESUME: &str = "runs/resume";
const STOP: &str = "runs/stop";
/// Maximum characters in a prompt and in a model's name.
const MAX_PROMPT: usize = 8_000;
const MAX_MODEL: usize = 200;

/// Returns `true` for the address of a form that only some sessions have.
pub(super) fn is_of_start(page: &str) -> bool {
    [START, RESUME, STOP].contains(&page)
}

/// Shows the form of a new run, in a session that may start one.
pub(super) fn new_run(views: &Views, visit: &Visit) -> Markup {
    html! {
        @if launcher(views, visit).is_some() {
            details.start {
                summary { "Start a run" }
                form.try method="post" action=(visit.path(START)) {
                    (hidden(visit, &[]))
                    (prompt("Prompt", true))
                    (model(""))
                    p { button { "Start" } span.quiet { " with the options of this console; its calls wait here for your decision" } }
                }
            }
        }
    }
}

/// Shows the forms that resume or stop a kept run, in a session that may do so.
pub(super) fn kept_run(views: &Views, visit: &Visit, header: &Header, state: &RunState) -> Markup {
    let Some(launcher) = launcher(views, visit) else { return html! {} };
    html! {
        @if *state == RunState::Running {
            @if launcher.has(&header.id) {
                form.try method="post" action=(visit.path(STOP)) {
                    (hidden(visit, &[("id", &header.id)]))
                    p { button.deny { "Stop the run" } span.quiet { " It can be resumed." } }
                }
            }
        } @else if is_here(header) {
            details.start {
                summary { "Resume the run" }
                form.try method="post" action=(visit.path(RESUME)) {
                    (hidden(visit, &[("id", &header.id)]))
                    (prompt("Prompt (optional where the run was interrupted)", false))
                    (model(&header.model))
                    p { button { "Resume" } span.quiet { " with the options of this console" } }
                }
            }
        } @else {
            p.quiet { "Resume it from a console in its folder: relative paths would name other files here." }
        }
    }
}

/// Returns `true` for a run of the console's own folder: relative paths of another one would name other files.
fn is_here(header: &Header) -> bool {
    std::env::current_dir().is_ok_and(|here| here.display().to_string() == header.folder)
}

fn model(name: &str) -> Markup {
    html! { label { "Model (optional: the settings have one)" input name="model" value=(plain(name, MAX_MODEL)) maxlength=(MAX_MODEL) autocomplete="off"; } }
}

fn prompt(label: &str, is_required: bool) -> Markup {
    html! { label { (label) textarea name="prompt" rows="3" maxlength=(MAX_PROMPT) required[is_required] {} } }
}

fn launcher<'v>(views: &'v Views, visit: &Visit) -> Option<&'v Launcher> {
    views.launcher.as_ref().filter(|_| visit.session.starts())
}

/// Starts, resumes or stops a run, and returns the page that shows it.
pub(super) fn act(views: &Views, visit: &Visit, form: &Query) -> Result<String, ViewError> {
    let none = || ViewError::Unknown("This console starts no runs.".to_owned());
    let launcher = launcher(views, visit).ok_or_else(none)?;
    let (prompt, model) = (form.get("prompt"), form.get("model"));
    check("prompt", prompt, MAX_PROMPT)?;
    check("model", model, MAX_MODEL)?;
    let run = match visit.page() {
        START if prompt.is_none() => {
            return Err(Advice::new("the prompt is empty", "write what the run should do").into());
        }
        START => launcher.start(&LaunchOptions { prompt, model, resume: None })?,
        page => {
            let id = RunStore::parse(form.get("id").unwrap_or_default())?;
            match page {
                STOP if launcher.stop(&id) => Some(id),
                STOP => return Err(ViewError::Unknown("The run is not one of this console, or has ended.".to_owned())),
                _ if views.runs.path(&id).is_file() && !is_here(&views.runs.read(&id)?.header) => {
                    return Err(ViewError::Unknown("The run is of another folder: resume it there.".to_owned()));
                }
                _ => launcher.start(&LaunchOptions { prompt, model, resume: Some(&id) })?,
            }
        }
    };
    Ok(run.map_or_else(|| "runs".to_owned(), |id| format!("runs/{id}")))
}

fn check(name: &str, text: Option<&str>, max: usize) -> Result<(), ViewError> {
    if text.is_some_and(|text| text.chars().count() > max) {
        return Err(Advice::new(format!("the {name} has more than {max} characters"), "shorten it").into());
    }
    Ok(())
}
