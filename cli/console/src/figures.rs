//! Figures of the audit log as tables: the tools, the calls over time, and denials by capability. The log is read once, as a
//! stream.

use std::time::SystemTime;

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib::audit::Day;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::counted;

use super::history::Filter;
use super::layout::{self, ROWS, bar, choice, field, table};
use super::tally::{Figures, Span, ToolFigures};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const TOTALS: [&str; 8] =
    ["Tool", "Calls", "Failures", "Median", "99th percentile", "Maximum", "Whole time", "Peak memory"];
const TIMES: [&str; 5] = ["From (UTC)", "Calls", "Failures", "Whole time", "Peak memory"];
const DENIED: [&str; 3] = ["Capability", "Denials", "Allowed by"];

/// Name of a measure that sorts the table of tools, and its value for a tool.
type Measure = (&'static str, fn(&ToolFigures) -> f64);

const MEASURES: [Measure; 7] = [
    ("99th percentile", |tool| tool.durations.quantile(0.99)),
    ("median", |tool| tool.durations.quantile(0.5)),
    ("maximum", |tool| tool.durations.max()),
    ("whole time", |tool| tool.whole.ms),
    ("calls", |tool| tool.whole.calls as f64),
    ("failures", |tool| tool.whole.failures as f64),
    ("memory", |tool| tool.whole.memory as f64),
];

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let query = &visit.query;
    let span = Span::ALL.into_iter().find(|span| query.get("span") == Some(span.name())).unwrap_or(Span::Day);
    let by = MEASURES.into_iter().find(|by| query.get("by") == Some(by.0)).unwrap_or(MEASURES[0]);
    let now = Timestamp::now().as_millisecond();
    let mut figures = Figures::new(span, now);
    let read = match Filter::read(query) {
        Ok(filter) => Ok(within(filter, span, now).each(views, visit, |entry| figures.add(&entry))?),
        Err(problem) => Err(problem),
    };
    let spans = Span::ALL.map(Span::name).into_iter().filter(|name| *name != Span::Day.name());
    let measures = MEASURES.map(|(name, _)| name).into_iter().skip(1);
    let content = html! {
        h1 { "Figures" }
        form.filter role="search" {
            (choice("span", "Time until now", Span::Day.name(), spans, query.get("span")))
            (field("tool", "Tool", "fs_*", query))
            (choice("by", "Sort tools by", MEASURES[0].0, measures, query.get("by")))
            button { "Show" }
        }
        div id="figures" data-live {
            @match read {
                Err(problem) => p.problem role="alert" { (layout::line(&problem, 400)) },
                Ok(_) if figures.tools.is_empty() => p.empty { "No call is logged in this time." },
                Ok(_) => (tables(visit, &figures, by)),
            }
        }
    };
    Ok(Page { title: "Figures".to_owned(), tab: Tab::Figures, content })
}

/// Narrows a filter to today where the span began today, so that no other file is read.
fn within(filter: Filter, span: Span, now: i64) -> Filter {
    let today = Day::of(SystemTime::now());
    let first = span.start(now).and_then(|start| Timestamp::from_millisecond(start).ok());
    if first.is_some_and(|first| Day::of(first.into()) == today) { filter.on(today) } else { filter }
}

fn tables(visit: &Visit, figures: &Figures, by: Measure) -> Markup {
    let whole = figures.whole();
    html! {
        p { (counted(whole.calls, "call")) ", " (counted(whole.failures, "failure")) " (every outcome but ok), "
            (layout::duration(whole.ms)) " in all." }
        h2 { "Tools" }
        (totals(visit, figures, by))
        h2 { "Calls over time" }
        (times(figures))
        h2 { "Denials by capability" }
        (denials(visit, figures))
    }
}

fn totals(visit: &Visit, figures: &Figures, (name, measure): Measure) -> Markup {
    let mut tools: Vec<(f64, &String, &ToolFigures)> =
        figures.tools.iter().map(|(name, tool)| (measure(tool), name, tool)).collect();
    tools.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    let path = visit.path("calls");
    let row = |(_, name, tool): &(f64, &String, &ToolFigures)| {
        let ToolFigures { whole, durations } = tool;
        [
            layout::link(&path, "tool", name, &layout::line(name, 60)),
            html! { (whole.calls) },
            html! { (whole.failures) },
            html! { (layout::duration(durations.quantile(0.5))) },
            html! { (layout::duration(durations.quantile(0.99))) },
            html! { (layout::duration(durations.max())) },
            html! { (layout::duration(whole.ms)) },
            html! { (rounded_size(whole.memory)) },
        ]
    };
    let caption = format!("Largest {name} first. Median and percentile are right to a few percent");
    html! {
        (table(&caption, TOTALS, tools.iter().take(ROWS).map(row).collect()))
        @if tools.len() > ROWS { p.quiet { "and " (tools.len() - ROWS) " more" } }
    }
}

/// Lists the times with calls, the latest first.
fn times(figures: &Figures) -> Markup {
    let Some(axis) = figures.axis else { return html! {} };
    let most = figures.times.iter().map(|cell| cell.calls).max().unwrap_or_default();
    let rows = figures.times.iter().enumerate().rev().filter(|(_, cell)| cell.calls > 0).map(|(bucket, cell)| {
        [
            layout::time(&axis.time(bucket)),
            html! { (cell.calls) " " (bar(cell.calls as f64, most as f64)) },
            html! { (cell.failures) },
            html! { (layout::duration(cell.ms)) },
            html! { (rounded_size(cell.memory)) },
        ]
    });
    table(&format!("Each row is {}, without those that have no calls", length(axis.width)), TIMES, rows.collect())
}

fn denials(visit: &Visit, figures: &Figures) -> Markup {
    let mut denied: Vec<_> = figures.denied.iter().collect();
    denied.sort_by(|one, other| other.1.count.cmp(&one.1.count).then(one.0.cmp(other.0)));
    let path = visit.path("calls");
    let rows = denied.iter().take(ROWS).map(|(capability, denials)| {
        let shown = html! { code { (layout::line(capability, 120)) } };
        let flag = denials.flag.as_deref().map(|flag| html! { code { (layout::line(flag, 120)) } });
        [
            layout::link(&path, "q", capability, &shown),
            html! { (denials.count) },
            flag.unwrap_or_else(|| html! { span.quiet { "–" } }),
        ]
    });
    html! {
        @if denied.is_empty() { p.empty { "Nothing was denied in this time." } } @else {
            (table("Denied capabilities, most denials first", DENIED, rows.collect()))
            @if denied.len() > ROWS { p.quiet { "and " (denied.len() - ROWS) " more" } }
        }
    }
}

/// Length of a bucket in words.
fn length(ms: i64) -> String {
    let units = [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ms % unit == 0).unwrap_or((1, "millisecond"));
    counted(ms / unit, name)
}
