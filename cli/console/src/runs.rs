//! List of kept runs, last changed first.

use maud::html;
use toolcrib_agent::runs::{RunSelection, RunSummary, StoredRun};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render;

use super::layout::{self, MAX_CELL, ROWS, choice, field, pager, table, word};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const HEADINGS: [&str; 7] = ["Prompt", "State", "Steps", "Calls", "Model", "Started (UTC)", "Size"];
/// States that a run can have.
const STATES: [&str; 8] = ["running", "answer", "ended", "max_steps", "budget", "interrupted", "failed", "killed"];

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let query = &visit.query;
    let selection = RunSelection { text: query.get("q"), folder: query.get("folder"), state: query.get("state") };
    let (page, stored) = (query.page(), views.runs.files()?);
    let is_filtered = selection.text.or(selection.state).or(selection.folder).is_some();
    let (mut passed, mut shown, mut damaged, mut has_more) = (0, Vec::new(), Vec::new(), false);
    // Without a filter, the runs of earlier pages need not be read.
    let skipped = if is_filtered { 0 } else { page * ROWS };
    for run in stored.iter().skip(skipped) {
        visit.check_time()?;
        if shown.len() == ROWS {
            has_more = true;
            break;
        }
        match selection.summary(&views.runs, run) {
            Ok(None) => {}
            Ok(Some(_)) if is_filtered && passed < page * ROWS => passed += 1,
            Ok(Some(summary)) => shown.push(row(visit, run, &summary)),
            Err(error) => damaged.push(render::message(&error)),
        }
    }
    let content = html! {
        h1 { "Runs" }
        form.filter role="search" {
            (field("q", "Search", "text in prompts, answers, calls", query))
            (choice("state", "State", "all", STATES, query.get("state")))
            (field("folder", "Folder", "/path/of/the/run", query))
            button { "Filter" }
            @if is_filtered { a href=(visit.path("runs")) { "Show all" } }
        }
        div id="list" data-live {
        @if stored.is_empty() {
            p.empty { "No run is kept yet. " code { "toolcrib run" } " and " code { "toolcrib chat" } " keep theirs here." }
        } @else if shown.is_empty() {
            p.empty { "No run matches." }
        } @else {
            (table("Kept runs, last changed first", HEADINGS, shown))
        }
        @for problem in damaged.iter().take(ROWS) { p.problem { (layout::line(problem, 400)) } }
        (pager(query, page, has_more))
        }
    };
    Ok(Page { title: "Runs".to_owned(), tab: Tab::Runs, content })
}

fn row(visit: &Visit, stored: &StoredRun, run: &RunSummary) -> [maud::Markup; 7] {
    let RunSummary { header, title, figures, state } = run;
    let number = |number: Option<u64>| html! { @match number { Some(number) => (number), None => "?" } };
    let title = if title.trim().is_empty() { "(no prompt)" } else { title.as_str() };
    [
        html! { a href=(visit.path(&format!("runs/{}", stored.id))) { (layout::line(title, MAX_CELL)) } },
        word(state.as_str()),
        number(figures.as_ref().map(|figures| figures.steps.into())),
        number(figures.as_ref().map(|figures| figures.calls)),
        layout::line(&header.model, 60),
        layout::time(&header.created.to_string()),
        html! { (rounded_size(stored.bytes)) },
    ]
}
