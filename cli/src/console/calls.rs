//! List of logged calls, newest first. The log is read as a stream: only the rows of the list are held.

use std::collections::VecDeque;

use maud::{Markup, html};
use toolcrib::Outcome;
use toolcrib::audit::{self, LogEntry};

use crate::audit_facts::{CallSelection, arguments, day};

use super::layout::{self, MAX_CELL, ROWS, Tab, choice, field, pager, table, word};
use super::record::{Record, address, denials};
use super::view::{Page, ViewError, Views, Visit};

const HEADINGS: [&str; 7] = ["Time (UTC)", "Tool", "Outcome", "Duration", "Granted", "Denied", "Arguments"];
/// Records between two looks at the time.
const INTERVAL: usize = 1_000;

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let (query, page) = (&visit.query, visit.query.page());
    let mut problem = None;
    let pattern = query.get("tool").and_then(|tool| match tool.parse() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            problem = Some(format!("{error}"));
            None
        }
    });
    let chosen_day = query.get("day").and_then(|text| day(text).map_err(|error| problem = Some(error)).ok());
    let outcome = query.get("outcome").and_then(|name| Outcome::ALL.into_iter().find(|it| it.as_str() == name));
    let selection = CallSelection { tool: pattern, outcome, text: query.get("q").map(str::to_lowercase) };
    let is_filtered = ["tool", "day", "outcome", "q"].iter().any(|name| query.get(name).is_some());
    // One more than the list has, to know whether there are older ones.
    let most = (page + 1) * ROWS + 1;
    let (mut rows, mut has_log): (VecDeque<LogEntry>, bool) = (VecDeque::new(), false);
    if views.audit.is_dir() && problem.is_none() {
        let records = audit::records(&views.audit)?;
        for (at, entry) in chosen_day.into_iter().fold(records, audit::LogRecords::of).enumerate() {
            if at % INTERVAL == 0 {
                visit.check_time()?;
            }
            let entry = entry?;
            has_log = true;
            if selection.includes(&entry) {
                rows.push_back(entry);
                if rows.len() > most {
                    rows.pop_front();
                }
            }
        }
    }
    let has_more = rows.len() == most;
    let shown: Vec<[Markup; 7]> =
        rows.iter().rev().skip(page * ROWS).take(ROWS).map(|entry| row(visit, entry)).collect();
    let content = html! {
        div.head { h1 { "Calls" } a.action href=(visit.path("verify")) { "Verify the log" } }
        form.filter role="search" {
            (field("tool", "Tool", "fs_*", query))
            (choice("outcome", "Outcome", "all", Outcome::ALL.map(Outcome::as_str), query.get("outcome")))
            (field("q", "Text", "in the record", query))
            (field("day", "Day (UTC)", "today, 2026-03-01", query))
            button { "Filter" }
            @if is_filtered { a href=(visit.path("calls")) { "Show all" } }
        }
        @if let Some(problem) = &problem {
            p.problem role="alert" { (layout::line(problem, 400)) }
        } @else if shown.is_empty() {
            p.empty { @if has_log || is_filtered { "No call matches." } @else { "No call is logged yet." } }
        } @else {
            (table("Logged calls, newest first", HEADINGS, shown))
        }
        (pager(query, page, has_more))
    };
    Ok(Page { title: "Calls".to_owned(), tab: Tab::Calls, content })
}

fn row(visit: &Visit, entry: &LogEntry) -> [Markup; 7] {
    let record = Record::of(entry);
    let granted = if record.granted.is_empty() { "nothing".to_owned() } else { record.granted.join(", ") };
    [
        html! { a href=(visit.path(&address(&record.file, record.line))) { (layout::time(&record.ts)) } },
        layout::line(&record.tool, 60),
        word(&record.outcome),
        html! { (layout::duration(record.ms)) },
        layout::line(&granted, MAX_CELL),
        denials(&record.denied, 2),
        html! { code { (layout::line(&arguments(&entry.arguments), MAX_CELL)) } },
    ]
}
