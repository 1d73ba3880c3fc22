//! Logged calls, sorted by a column, or the newest first. The log is read as a stream: only the rows of the
//! list are held.

use std::collections::BTreeMap;

use maud::{Markup, html};
use toolcrib::audit::LogEntry;
use toolcrib_settings::audit_facts::arguments;

use super::history::Filter;
use super::layout::{self, MAX_CELL, ROWS, pager};
use super::record::{OwnUse, Record, address, denials};
use super::states::word;
use super::table::{Column, SortKey, SortOrder, columns};
use super::units::Unit;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Orders of the list.
const KEYS: [SortKey; 5] = [("time", true), ("tool", false), ("outcome", false), ("duration", true), ("memory", true)];
/// Maximum bytes of a text that an order compares.
const MAX_COMPARED: usize = 200;

/// First rows in an order.
struct Ranking {
    order: SortOrder,
    most: usize,
    read: u64,
    /// Records by their measure and their place in the log.
    rows: BTreeMap<(Measure, u64), LogEntry>,
}

/// Value of a record that an order compares.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    Number(u64),
    Text(String),
}

impl Measure {
    fn of(key: &str, entry: &LogEntry) -> Self {
        let text = |text: &str| Self::Text(text[..text.floor_char_boundary(MAX_COMPARED)].to_owned());
        match key {
            "tool" => text(&entry.tool),
            "outcome" => text(&entry.outcome),
            // Microseconds.
            "duration" => Self::Number((OwnUse::of(entry).ms * 1_000.0) as u64),
            "memory" => Self::Number(OwnUse::of(entry).peak_memory_bytes),
            _ => Self::Number(0),
        }
    }
}

impl Ranking {
    fn add(&mut self, entry: LogEntry) {
        self.read += 1;
        self.rows.insert((Measure::of(self.order.key, &entry), self.read), entry);
        if self.rows.len() > self.most {
            if self.order.is_descending {
                self.rows.pop_first()
            } else {
                self.rows.pop_last()
            };
        }
    }

    /// Returns the rows of a page in the order.
    fn page(&self, page: usize) -> Vec<&LogEntry> {
        let (from, most) = (page * ROWS, ROWS);
        match self.order.is_descending {
            true => self.rows.values().rev().skip(from).take(most).collect(),
            false => self.rows.values().skip(from).take(most).collect(),
        }
    }
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let (query, page) = (&visit.query, visit.query.page());
    let order = SortOrder::read(query, &KEYS);
    // One more than the list has, to know whether there are more.
    let most = (page + 1) * ROWS + 1;
    let mut ranking = Ranking { order, most, read: 0, rows: BTreeMap::new() };
    let read = match Filter::read(query) {
        Ok(filter) => Ok(filter.each(views, visit, |entry| ranking.add(entry))?),
        Err(problem) => Err(problem),
    };
    let is_filtered = Filter::is_in(query);
    let has_more = ranking.rows.len() == most;
    let shown = ranking.page(page);
    let export = visit.path(&format!("calls/export{}", Filter::address(query)));
    let content = html! {
        div.head {
            h1 { "Calls" }
            span.links { a.action href=(export) download { "Export as NDJSON" } " " a.action href=(visit.path("verify")) { "Verify the log" } }
        }
        form.filter role="search" {
            (Filter::fields(query))
            (order.fields())
            button { "Filter" }
            @if is_filtered || !order.is_default() { a href=(visit.path("calls")) { "Show all" } }
        }
        div id="list" data-live {
            @if let Ok(reading) = &read { (reading.notice(visit)) }
            @match read {
                Err(problem) => p.problem role="alert" { (layout::line(&problem, 400)) },
                Ok(reading) if shown.is_empty() => p.empty {
                    @if reading.has_any || is_filtered { "No call matches." } @else { "No call is logged yet." }
                },
                Ok(_) => (list(visit, &shown, order)),
            }
            (pager(query, page, has_more))
        }
    };
    Ok(Page { title: "Calls".to_owned(), tab: Tab::Calls, content })
}

fn list(visit: &Visit, entries: &[&LogEntry], order: SortOrder) -> Markup {
    let time = Unit::of_durations(entries.iter().map(|entry| OwnUse::of(entry).ms));
    let size = Unit::of_sizes(entries.iter().map(|entry| OwnUse::of(entry).peak_memory_bytes));
    let headings = [
        Column::text("Time (UTC)").by("time"),
        Column::text("Tool").by("tool"),
        Column::text("Outcome").by("outcome"),
        Column::number(time.heading("Duration")).by("duration"),
        Column::number(size.heading("Memory")).by("memory"),
        Column::text("Granted"),
        Column::text("Denied"),
        Column::text("Arguments"),
    ];
    let rows = entries.iter().map(|entry| row(visit, entry, time, size)).collect();
    columns(&format!("Logged calls {}", order.in_words()), headings, rows, Some((&visit.query, order)))
}

fn row(visit: &Visit, entry: &LogEntry, time: Unit, size: Unit) -> [Markup; 8] {
    let record = Record::of(entry);
    let granted = if record.granted.is_empty() { "nothing".to_owned() } else { record.granted.join(", ") };
    [
        html! { a href=(visit.path(&address(&record.file, record.line))) { (layout::time(&record.ts)) } },
        layout::cell(&record.tool, 90),
        word(&record.outcome),
        html! { (time.show(record.own_ms())) },
        html! { (size.show(record.more.peak_memory_bytes as f64)) },
        layout::path_cell(&granted, MAX_CELL),
        denials(&record.denied, 2),
        html! { code { (layout::cell(&arguments(&entry.arguments), MAX_CELL)) } },
    ]
}
