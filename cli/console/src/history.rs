//! The audit log, read as a stream by the filter in a URL and within the time of a view.

use std::path::{Path, PathBuf};

use maud::{Markup, html};
use toolcrib::Outcome;
use toolcrib::audit::{self, Day, LogEntry, LogRecords};
use toolcrib_base::render::counted;
use toolcrib_settings::audit_facts::{CallSelection, day};

use super::layout::{choice, field};
use super::query::Query;
use super::states::in_words;
use super::view::Views;
use super::visit::{ViewError, Visit};

/// Records between two looks at the time.
pub(super) const INTERVAL: usize = 1_000;
/// Parameters of a filter.
const PARAMETERS: [&str; 4] = ["tool", "outcome", "q", "day"];

/// Facts about the log that was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    /// `true` if the log has any record of the day.
    pub(super) has_any: bool,
    /// Lines between records that are no records; unknown for one day, as other days' lines are left out.
    pub(super) unreadable: u64,
}

impl Reading {
    /// Shows a notice if there are lines that are no records.
    pub(super) fn notice(self, visit: &Visit) -> Markup {
        html! {
            @if self.unreadable > 0 {
                p.problem {
                    (counted(self.unreadable, "line")) " of the log cannot be read as records and are missing here. "
                    a href=(visit.path("verify")) { "Verify the log" }
                }
            }
        }
    }
}

/// Filter of an address.
#[derive(Debug, Default)]
pub(super) struct Filter {
    selection: CallSelection,
    day: Option<Day>,
}

impl Filter {
    /// Reads the filter of an address.
    ///
    /// # Errors
    ///
    /// A pattern or a day that cannot be read, in words.
    pub(super) fn read(query: &Query) -> Result<Self, String> {
        let pattern = query.get("tool").map(|tool| tool.parse().map_err(|error| format!("{error}"))).transpose()?;
        let outcome = query.get("outcome").and_then(|name| Outcome::ALL.into_iter().find(|it| it.as_str() == name));
        let text = query.get("q").map(str::to_lowercase);
        let day = query.get("day").map(day).transpose()?;
        Ok(Self { selection: CallSelection { tool: pattern, outcome, run: None, text }, day })
    }

    /// Returns `true` if an address has a filter.
    pub(super) fn is_in(query: &Query) -> bool {
        PARAMETERS.iter().any(|name| query.get(name).is_some())
    }

    /// Returns the URL query for this filter.
    pub(super) fn address(query: &Query) -> String {
        query.only(&PARAMETERS)
    }

    /// Shows the fields of the filter.
    pub(super) fn fields(query: &Query) -> Markup {
        html! {
            (field("tool", "Tool", "fs_*", query))
            (choice("outcome", "Outcome", "all", Outcome::ALL.map(|outcome| (outcome.as_str(), in_words(outcome.as_str()))), query.get("outcome")))
            (field("q", "Text", "in the record", query))
            (field("day", "Day (UTC)", "today, 2026-03-01", query))
        }
    }

    /// Returns the filter with only the records of a day, unless it has a day already.
    pub(super) fn on(self, day: Day) -> Self {
        Self { day: self.day.or(Some(day)), ..self }
    }

    /// Opens the log; `None` if there is none.
    pub(super) fn open(&self, folder: &Path) -> Result<Option<LogRecords>, ViewError> {
        if !folder.is_dir() {
            return Ok(None);
        }
        Ok(Some(self.day.into_iter().fold(audit::records(folder)?, LogRecords::of)))
    }

    /// Returns `true` if a record that was opened is selected.
    pub(super) fn includes(&self, entry: &LogEntry) -> bool {
        self.selection.includes(entry)
    }

    /// Reads the selected records, oldest first.
    pub(super) fn each(
        &self,
        views: &Views,
        visit: &Visit,
        mut take: impl FnMut(LogEntry),
    ) -> Result<Reading, ViewError> {
        let mut reading = Reading::default();
        // File and line of the last record.
        let mut last = (PathBuf::new(), 0);
        for (at, entry) in self.open(&views.audit)?.into_iter().flatten().enumerate() {
            if at % INTERVAL == 0 {
                visit.check_time()?;
            }
            let entry = entry?;
            reading.has_any = true;
            if self.day.is_none() {
                let before = if last.0 == entry.file { last.1 } else { 0 };
                reading.unreadable += entry.line.saturating_sub(before + 1);
                if last.0 != entry.file {
                    last.0.clone_from(&entry.file);
                }
                last.1 = entry.line;
            }
            if self.includes(&entry) {
                take(entry);
            }
        }
        Ok(reading)
    }
}
