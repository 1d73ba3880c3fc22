//! List of logged calls, newest, longest or largest first. The log is read as a stream: only the rows of the list are held.

use std::collections::BTreeMap;

use maud::{Markup, html};
use toolcrib::audit::LogEntry;
use toolcrib_base::parse::rounded_size;
use toolcrib_settings::audit_facts::arguments;

use super::history::Filter;
use super::layout::{self, MAX_CELL, ROWS, choice, pager, table, word};
use super::record::{OwnUse, Record, address, denials};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const HEADINGS: [&str; 8] = ["Time (UTC)", "Tool", "Outcome", "Duration", "Memory", "Granted", "Denied", "Arguments"];

/// Order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Newest,
    Longest,
    Largest,
}

/// First rows in an order.
struct Ranking {
    order: Order,
    most: usize,
    read: u64,
    /// Records by their measure and their place in the log.
    rows: BTreeMap<(u64, u64), LogEntry>,
}

impl Order {
    const ALL: [Self; 3] = [Self::Newest, Self::Longest, Self::Largest];

    /// Returns the name in an address and in the choice.
    fn name(self) -> &'static str {
        match self {
            Self::Newest => "time",
            Self::Longest => "duration",
            Self::Largest => "memory",
        }
    }

    fn caption(self) -> &'static str {
        match self {
            Self::Newest => "Logged calls, newest first",
            Self::Longest => "Logged calls, longest first",
            Self::Largest => "Logged calls, those with the most memory first",
        }
    }

    fn measure(self, entry: &LogEntry) -> u64 {
        match self {
            Self::Newest => 0,
            // Microseconds.
            Self::Longest => (OwnUse::of(entry).ms * 1_000.0) as u64,
            Self::Largest => OwnUse::of(entry).peak_memory_bytes,
        }
    }
}

impl Ranking {
    fn add(&mut self, entry: LogEntry) {
        self.read += 1;
        self.rows.insert((self.order.measure(&entry), self.read), entry);
        if self.rows.len() > self.most {
            self.rows.pop_first();
        }
    }
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let (query, page) = (&visit.query, visit.query.page());
    let order = Order::ALL.into_iter().find(|order| query.get("sort") == Some(order.name())).unwrap_or(Order::Newest);
    // One more than the list has, to know whether there are more.
    let most = (page + 1) * ROWS + 1;
    let mut ranking = Ranking { order, most, read: 0, rows: BTreeMap::new() };
    let read = match Filter::read(query) {
        Ok(filter) => Ok(filter.each(views, visit, |entry| ranking.add(entry))?),
        Err(problem) => Err(problem),
    };
    let (rows, is_filtered) = (&ranking.rows, Filter::is_in(query));
    let has_more = rows.len() == most;
    let shown: Vec<[Markup; 8]> =
        rows.values().rev().skip(page * ROWS).take(ROWS).map(|entry| row(visit, entry)).collect();
    let others = Order::ALL.map(Order::name).into_iter().skip(1);
    let export = visit.path(&format!("calls/export{}", Filter::address(query)));
    let content = html! {
        div.head {
            h1 { "Calls" }
            span.links { a.action href=(export) download { "Export as NDJSON" } " " a.action href=(visit.path("verify")) { "Verify the log" } }
        }
        form.filter role="search" {
            (Filter::fields(query))
            (choice("sort", "Order by", Order::Newest.name(), others, query.get("sort")))
            button { "Filter" }
            @if is_filtered || order != Order::Newest { a href=(visit.path("calls")) { "Show all" } }
        }
        div id="list" data-live {
            @if let Ok(reading) = &read { (reading.notice(visit)) }
            @match read {
                Err(problem) => p.problem role="alert" { (layout::line(&problem, 400)) },
                Ok(reading) if shown.is_empty() => p.empty {
                    @if reading.has_any || is_filtered { "No call matches." } @else { "No call is logged yet." }
                },
                Ok(_) => (table(order.caption(), HEADINGS, shown)),
            }
            (pager(query, page, has_more))
        }
    };
    Ok(Page { title: "Calls".to_owned(), tab: Tab::Calls, content })
}

fn row(visit: &Visit, entry: &LogEntry) -> [Markup; 8] {
    let record = Record::of(entry);
    let granted = if record.granted.is_empty() { "nothing".to_owned() } else { record.granted.join(", ") };
    [
        html! { a href=(visit.path(&address(&record.file, record.line))) { (layout::time(&record.ts)) } },
        layout::line(&record.tool, 60),
        word(&record.outcome),
        html! { (layout::duration(record.own_ms())) },
        html! { (rounded_size(record.more.peak_memory_bytes)) },
        layout::line(&granted, MAX_CELL),
        denials(&record.denied, 2),
        html! { code { (layout::line(&arguments(&entry.arguments), MAX_CELL)) } },
    ]
}
