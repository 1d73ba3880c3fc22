//! List of the tools that the options of the command load. They are read again when the list is older than some seconds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use maud::{Markup, html};
use serde_json::Map;
use toolcrib::tool::Limits;
use toolcrib::{Builder, Runtime, Tool};
use toolcrib_settings::trust::TrustOptions;
use toolcrib_sources::options::Sources;
use toolcrib_sources::tool_facts::{disabled, first_sentence, granted, needs, permissions, source};

use super::layout::{self, MAX_CELL, ROWS, Tab, choice, field, pager, table, word};
use super::revision::stamp;
use super::trial::Trials;
use super::view::{Page, ViewError, Views, Visit};

/// Age at which the tools are read again.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Name of the console in the records of its calls.
const DOOR: &str = "console";
const HEADINGS: [&str; 6] = ["Tool", "State", "Needs", "Granted", "Source", "Description"];
/// States of a tool.
const STATES: [&str; 2] = ["usable", "disabled"];

/// Tools of the sources, as they were read last.
pub(super) struct LoadedTools {
    sources: Sources,
    /// Approver of the calls that a person tries.
    trials: Trials,
    loaded: Mutex<Option<Loaded>>,
    /// Number of decisions of the console about permissions.
    decided: AtomicU64,
}

/// Tools, and the permissions with which they were loaded.
#[derive(Clone)]
pub(super) struct Loaded {
    at: Instant,
    pub(super) permissions: Permissions,
    pub(super) runtime: Arc<Runtime>,
}

/// Value that differs once a permission was given or taken back, by the console or in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permissions(u64);

impl LoadedTools {
    pub(super) fn new(sources: Sources, trials: Trials) -> Self {
        Self { sources, trials, loaded: Mutex::default(), decided: AtomicU64::new(0) }
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Lets the tools be read again, after a decision about them. Calls that wait for a click were prepared before it, so they end.
    pub(super) fn reload(&self) {
        self.decided.fetch_add(1, Relaxed);
        self.trials.stop_waiting();
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the tools, which only a person's trials call.
    ///
    /// # Errors
    ///
    /// There is no source, or it cannot be read.
    pub(super) fn runtime(&self) -> anyhow::Result<Arc<Runtime>> {
        self.load().map(|loaded| loaded.runtime)
    }

    /// Returns the tools with the permissions that they have.
    ///
    /// # Errors
    ///
    /// See [`LoadedTools::runtime`].
    pub(super) fn load(&self) -> anyhow::Result<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.at.elapsed() < MAX_AGE) {
            return Ok(loaded.clone());
        }
        let permissions = self.permissions();
        let approver = Arc::new(self.trials.clone());
        let with = |builder: Builder| builder.application(DOOR, Map::new()).approver(approver);
        let runtime = Arc::new(self.sources.runtime_with(Limits::default().deadline, [], with)?);
        Ok(loaded.insert(Loaded { at: Instant::now(), permissions, runtime }).clone())
    }

    /// Returns the present permissions.
    pub(super) fn permissions(&self) -> Permissions {
        let mut hash = DefaultHasher::new();
        self.decided.load(Relaxed).hash(&mut hash);
        self.sources.rules.kept.file().inspect(|approvals| stamp(approvals.path(), &mut hash));
        TrustOptions::records().inspect(|trusted| stamp(trusted.path(), &mut hash));
        Permissions(hash.finish())
    }
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let (query, runtime) = (&visit.query, views.tools.runtime()?);
    let text = query.get("q").map(str::to_lowercase);
    let is_found = |tool: &Tool| {
        text.as_ref().is_none_or(|text| {
            let description = tool.description.as_deref().unwrap_or_default();
            tool.name.to_lowercase().contains(text) || description.to_lowercase().contains(text)
        })
    };
    let is_wanted = |tool: &Tool| match query.get("state") {
        Some("usable") => disabled(&runtime, tool).is_none(),
        Some("disabled") => disabled(&runtime, tool).is_some(),
        _ => true,
    };
    let mut found: Vec<&Tool> = runtime.tools().filter(|tool| is_wanted(tool) && is_found(tool)).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let (page, all) = (query.page(), found.len());
    let rows: Vec<[Markup; 6]> =
        found.into_iter().skip(page * ROWS).take(ROWS).map(|tool| row(visit, &runtime, tool)).collect();
    let content = html! {
        h1 { "Tools" }
        form.filter role="search" {
            (field("q", "Search", "name or description", query))
            (choice("state", "State", "all", STATES, query.get("state")))
            button { "Filter" }
            @if text.is_some() || query.get("state").is_some() { a href=(visit.path("tools")) { "Show all" } }
        }
        @if rows.is_empty() { p.empty { "No tool matches." } } @else {
            (table("Tools with what they need and what these options grant", HEADINGS, rows))
        }
        (pager(query, page, all > (page + 1) * ROWS))
    };
    Ok(Page { title: "Tools".to_owned(), tab: Tab::Tools, content })
}

fn row(visit: &Visit, runtime: &Runtime, tool: &Tool) -> [Markup; 6] {
    let needs = if tool.requested.declared { permissions(&needs(tool)) } else { "undeclared".to_owned() };
    let state = if disabled(runtime, tool).is_some() { "disabled" } else { "usable" };
    [
        layout::link(&visit.path("tool"), "name", &tool.name, &layout::line(&tool.name, 80)),
        word(state),
        layout::line(&needs, MAX_CELL),
        layout::line(&permissions(&granted(runtime, tool)), MAX_CELL),
        layout::line(&source(tool), 80),
        layout::line(&first_sentence(tool), MAX_CELL),
    ]
}
