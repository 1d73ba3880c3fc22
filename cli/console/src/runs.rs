//! List of kept runs, last changed first unless a column orders it.

use std::cmp::Ordering;
use std::time::SystemTime;

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib_agent::runs::{RunSelection, RunState, RunSummary, StoredRun};
use toolcrib_base::render;

use super::decisions;
use super::layout::{self, MAX_CELL, ROWS, choice, field, pager};
use super::start;
use super::states::{self, in_words, word};
use super::table::{Column, SortKey, SortOrder, columns};
use super::units::Unit;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Orders of the list.
const KEYS: [SortKey; 11] = [
    ("last change", true),
    ("prompt", false),
    ("state", false),
    ("duration", true),
    ("steps", true),
    ("calls", true),
    ("tokens", true),
    ("cost", true),
    ("model", false),
    ("folder", false),
    ("started", true),
];

/// Run in the list.
struct Row {
    id: String,
    run: RunSummary,
    ms: f64,
    /// Identifier of a waiting call.
    waiting: Option<String>,
}

impl Row {
    fn new(stored: &StoredRun, run: RunSummary, waiting: Option<&String>) -> Self {
        let ms = duration(&run, stored.modified);
        Self { id: stored.id.clone(), run, ms, waiting: waiting.cloned() }
    }

    fn steps(&self) -> Option<f64> {
        Some(self.run.figures.as_ref()?.steps.into())
    }

    fn calls(&self) -> Option<f64> {
        Some(self.run.figures.as_ref()?.calls as f64)
    }

    fn tokens(&self) -> Option<f64> {
        let usage = self.run.figures.as_ref()?.usage?;
        Some(usage.prompt_tokens as f64 + usage.completion_tokens as f64)
    }

    fn cost(&self) -> Option<f64> {
        let figures = self.run.figures.as_ref()?;
        // Without counted tokens, their cost is not known.
        figures.cost.filter(|_| figures.usage.is_some())
    }

    /// State as an address and a word name it.
    fn state(&self) -> &str {
        if self.waiting.is_some() { states::WAITING } else { self.run.state.as_str() }
    }

    /// Compares two runs by a key; `None` for the order in which they were changed.
    fn compare(&self, other: &Self, key: &str) -> Option<Ordering> {
        let number = |of: fn(&Self) -> Option<f64>| {
            of(self).unwrap_or(f64::NEG_INFINITY).total_cmp(&of(other).unwrap_or(f64::NEG_INFINITY))
        };
        Some(match key {
            "prompt" => self.run.title.to_lowercase().cmp(&other.run.title.to_lowercase()),
            "state" => in_words(self.state()).cmp(in_words(other.state())),
            "duration" => self.ms.total_cmp(&other.ms),
            "steps" => number(Self::steps),
            "calls" => number(Self::calls),
            "tokens" => number(Self::tokens),
            "cost" => number(Self::cost),
            "model" => self.run.header.model.cmp(&other.run.header.model),
            "folder" => self.run.header.folder.cmp(&other.run.header.folder),
            "started" => self.run.header.created.cmp(&other.run.header.created),
            _ => return None,
        })
    }
}

/// Returns the time that a run took in milliseconds: as its processes stated it, or from its start to its last change.
fn duration(run: &RunSummary, modified: SystemTime) -> f64 {
    let stated = run.figures.as_ref().and_then(|figures| figures.ms).filter(|_| run.state != RunState::Running);
    let end = if run.state == RunState::Running { Ok(Timestamp::now()) } else { Timestamp::try_from(modified) };
    let whole = || end.map_or(0, |end| end.as_millisecond() - run.header.created.as_millisecond()).max(0);
    stated.map_or_else(|| whole() as f64, |ms| ms as f64)
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let query = &visit.query;
    let order = SortOrder::read(query, &KEYS);
    let waiting = decisions::waiting_runs(views);
    let state = query.get("state");
    let wants_waiting = state == Some(states::WAITING);
    let stored_state = state.filter(|_| !wants_waiting);
    let selection = RunSelection { text: query.get("q"), folder: query.get("folder"), state: stored_state };
    let (page, stored) = (query.page(), views.runs.files()?);
    let is_filtered = selection.text.or(state).or(selection.folder).is_some();
    // Only the order of the last change, without a filter, is known without a look into the runs.
    let (skipped, most) = match (order.key, is_filtered) {
        ("last change", false) if order.is_descending => (page * ROWS, ROWS),
        ("last change", _) if order.is_descending => (0, (page + 1) * ROWS),
        _ => (0, stored.len()),
    };
    let (mut rows, mut damaged, mut has_more) = (Vec::new(), Vec::new(), false);
    for run in stored.iter().skip(skipped).filter(|run| !wants_waiting || waiting.contains_key(&run.id)) {
        visit.check_time()?;
        if rows.len() == most {
            has_more = true;
            break;
        }
        match selection.summary(&views.runs, run) {
            Ok(None) => {}
            Ok(Some(summary)) => rows.push(Row::new(run, summary, waiting.get(&run.id))),
            Err(error) => damaged.push(render::message(&error)),
        }
    }
    if order.key == "last change" && !order.is_descending {
        rows.reverse();
    }
    rows.sort_by(|one, other| one.compare(other, order.key).map_or(Ordering::Equal, |found| order.directed(found)));
    let passed = if skipped == 0 { page * ROWS } else { 0 };
    has_more |= rows.len() > passed + ROWS;
    let shown: Vec<&Row> = rows.iter().skip(passed).take(ROWS).collect();
    let content = html! {
        h1 { "Runs" }
        (start::new_run(views, visit))
        form.filter role="search" {
            (field("q", "Search", "text in prompts, answers, calls", query))
            (choice("state", "State", "all", states::OF_RUNS.map(|state| (state, in_words(state))), state))
            (field("folder", "Folder", "/path/of/the/run", query))
            (order.fields())
            button { "Filter" }
            @if is_filtered || !order.is_default() { a href=(visit.path("runs")) { "Show all" } }
        }
        div id="list" data-live {
        @if stored.is_empty() {
            p.empty { "No run is kept yet. " code { "toolcrib run" } " and " code { "toolcrib chat" } " keep theirs here." }
        } @else if shown.is_empty() {
            p.empty { "No run matches." }
        } @else {
            (list(visit, &shown, order))
        }
        @for problem in damaged.iter().take(ROWS) { p.problem { (layout::line(problem, 400)) } }
        (pager(query, page, has_more))
        }
    };
    Ok(Page { title: "Runs".to_owned(), tab: Tab::Runs, content })
}

fn list(visit: &Visit, rows: &[&Row], order: SortOrder) -> Markup {
    let time = Unit::of_durations(rows.iter().map(|row| row.ms));
    let cost = Unit::of_costs(rows.iter().filter_map(|row| row.cost()));
    let headings = [
        Column::text("Prompt").by("prompt"),
        Column::text("State").by("state"),
        Column::text("Started (UTC)").by("started"),
        Column::number(time.heading("Duration")).by("duration"),
        Column::number("Steps").by("steps"),
        Column::number("Calls").by("calls"),
        Column::number("Tokens").by("tokens"),
        Column::number("Cost").by("cost"),
        Column::text("Model").by("model"),
        Column::text("Folder").by("folder"),
    ];
    let rows = rows.iter().map(|row| cells(visit, row, time, cost)).collect();
    columns(&format!("Kept runs {}", order.in_words()), headings, rows, Some((&visit.query, order)))
}

fn cells(visit: &Visit, row: &Row, time: Unit, cost: Unit) -> [Markup; 10] {
    let RunSummary { header, title, .. } = &row.run;
    let number = |number: Option<f64>, unit: Unit| {
        html! {
            @match number { Some(number) => (unit.show(number)), None => span.none { "–" } }
        }
    };
    let title = if title.trim().is_empty() { "(no prompt)" } else { title.as_str() };
    let folder = header.folder.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(&header.folder);
    [
        html! { a href=(visit.path(&format!("runs/{}", row.id))) { (layout::cell(title, MAX_CELL)) } },
        state(visit, row.run.state.as_str(), row.waiting.as_ref()),
        layout::time(&header.created.to_string()),
        html! { (time.show(row.ms)) },
        number(row.steps(), Unit::count()),
        number(row.calls(), Unit::count()),
        number(row.tokens(), Unit::count()),
        number(row.cost(), cost),
        layout::cell(&header.model, 60),
        html! { span title=(layout::plain(&header.folder, 300)) { (layout::cell(folder, 60)) } },
    ]
}

/// Shows the state of a run; one that waits leads to its decision.
pub(super) fn state(visit: &Visit, state: &str, waiting: Option<&String>) -> Markup {
    html! {
        @match waiting {
            Some(id) => a.go href=(visit.path(&decisions::address(id))) { (word(states::WAITING)) },
            None => (word(state)),
        }
    }
}
