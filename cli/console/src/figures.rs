//! Figures of the audit log as charts and tables: the calls over time, the tools, and denials by capability. The log is read
//! once, as a stream.

use std::time::SystemTime;

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib::audit::Day;
use toolcrib_base::render::counted;

use super::chart::{self, Bucket, bar};
use super::history::Filter;
use super::layout::{self, ROWS, choice, field};
use super::table::{Column, SortKey, SortOrder, columns};
use super::tally::{Axis, Cell, Figures, Span, ToolFigures};
use super::units::Unit;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Minimum number of buckets in the chart, for which empty ones before the first call are kept.
const MIN_BUCKETS: usize = 12;

/// Orders of the tools.
const KEYS: [SortKey; 8] = [
    ("99th percentile", true),
    ("median", true),
    ("maximum", true),
    ("whole time", true),
    ("calls", true),
    ("failures", true),
    ("memory", true),
    ("tool", false),
];

/// Returns the value of a tool that an order compares; 0 for an order by name.
fn measure(key: &str, tool: &ToolFigures) -> f64 {
    match key {
        "99th percentile" => tool.durations.quantile(0.99),
        "median" => tool.durations.quantile(0.5),
        "maximum" => tool.durations.max(),
        "whole time" => tool.whole.ms,
        "calls" => tool.whole.calls as f64,
        "failures" => tool.whole.failures as f64,
        "memory" => tool.whole.memory as f64,
        _ => 0.0,
    }
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let query = &visit.query;
    let span = Span::ALL.into_iter().find(|span| query.get("span") == Some(span.name())).unwrap_or(Span::Day);
    let order = SortOrder::read(query, &KEYS);
    let now = Timestamp::now().as_millisecond();
    let mut figures = Figures::new(span, now);
    let read = match Filter::read(query) {
        Ok(filter) => Ok(within(filter, span, now).each(views, visit, |entry| figures.add(&entry))?),
        Err(problem) => Err(problem),
    };
    let spans = Span::ALL.map(Span::name).into_iter().filter(|name| *name != Span::Day.name());
    let spans = spans.map(|name| (name, name));
    let content = html! {
        h1 { "Figures" }
        form.filter role="search" {
            (choice("span", "Time until now", Span::Day.name(), spans, query.get("span")))
            (field("tool", "Tool", "fs_*", query))
            button { "Show" }
        }
        div id="figures" data-live {
            @match read {
                Err(problem) => p.problem role="alert" { (layout::line(&problem, 400)) },
                Ok(_) if figures.tools.is_empty() => p.empty { "No call is logged in this time." },
                Ok(_) => (tables(visit, &figures, order)),
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

fn tables(visit: &Visit, figures: &Figures, order: SortOrder) -> Markup {
    let whole = figures.whole();
    let mut tools: Vec<(f64, &String, &ToolFigures)> =
        figures.tools.iter().map(|(name, tool)| (measure(order.key, tool), name, tool)).collect();
    tools.sort_by(|one, other| order.directed(one.0.total_cmp(&other.0)).then(order.directed(one.1.cmp(other.1))));
    html! {
        p { (counted(whole.calls, "call")) ", " (counted(whole.failures, "failure")) " (outcomes other than ok), "
            (layout::duration(whole.ms)) " in all." }
        div.charts {
            @if let Some(axis) = figures.axis { (chart::columns("Calls over time", &buckets(axis, &figures.times))) }
            (chart(order, &tools))
        }
        h2 { "Tools" }
        (totals(visit, &tools, order))
        h2 { "Calls over time" }
        (times(figures))
        h2 { "Denials by capability" }
        (denials(visit, figures))
    }
}

/// Returns the columns of the chart, from the first bucket with calls on.
fn buckets(axis: Axis, times: &[Cell]) -> Vec<Bucket> {
    let first = times.iter().position(|cell| cell.calls > 0).unwrap_or_default();
    let first = first.min(times.len().saturating_sub(MIN_BUCKETS));
    let bucket = |(at, cell): (usize, &Cell)| {
        let time = axis.time(at).replacen('T', " ", 1);
        let label = if axis.width % DAY == 0 { time.get(5..10) } else { time.get(11..16) };
        Bucket {
            label: label.unwrap_or_default().to_owned(),
            time: time.get(..16).unwrap_or(&time).to_owned(),
            calls: cell.calls,
            failures: cell.failures,
        }
    };
    times.iter().enumerate().skip(first).map(bucket).collect()
}

/// Draws the measure of the order for the first tools, or the calls where the order has none.
fn chart(order: SortOrder, tools: &[(f64, &String, &ToolFigures)]) -> Markup {
    let key = if order.key == "tool" { "calls" } else { order.key };
    let values: Vec<(String, f64)> =
        tools.iter().map(|(_, name, tool)| ((*name).clone(), measure(key, tool))).collect();
    let unit = match key {
        "calls" | "failures" => Unit::count(),
        "memory" => Unit::of_sizes(tools.iter().map(|(_, _, tool)| tool.whole.memory)),
        _ => Unit::of_durations(values.iter().map(|(_, value)| *value)),
    };
    let title = format!("{}{} by tool", key[..1].to_uppercase(), &key[1..]);
    chart::bars(&title, unit, &values)
}

fn totals(visit: &Visit, tools: &[(f64, &String, &ToolFigures)], order: SortOrder) -> Markup {
    let path = visit.path("calls");
    let shown = &tools[..tools.len().min(ROWS)];
    let unit = Unit::of_durations(shown.iter().map(|(_, _, tool)| tool.durations.max()));
    let whole_unit = Unit::of_durations(shown.iter().map(|(_, _, tool)| tool.whole.ms));
    let size = Unit::of_sizes(shown.iter().map(|(_, _, tool)| tool.whole.memory));
    let row = |(_, name, tool): &(f64, &String, &ToolFigures)| {
        let ToolFigures { whole, durations } = tool;
        [
            layout::link(&path, "tool", name, &layout::cell(name, 90)),
            html! { (Unit::count().show(whole.calls as f64)) },
            html! { (Unit::count().show(whole.failures as f64)) },
            html! { (unit.show(durations.quantile(0.5))) },
            html! { (unit.show(durations.quantile(0.99))) },
            html! { (unit.show(durations.max())) },
            html! { (whole_unit.show(whole.ms)) },
            html! { (size.show(whole.memory as f64)) },
        ]
    };
    let headings = [
        Column::text("Tool").by("tool"),
        Column::number("Calls").by("calls"),
        Column::number("Failures").by("failures"),
        Column::number(unit.heading("Median")).by("median"),
        Column::number(unit.heading("99th percentile")).by("99th percentile"),
        Column::number(unit.heading("Maximum")).by("maximum"),
        Column::number(whole_unit.heading("Whole time")).by("whole time"),
        Column::number(size.heading("Peak memory")).by("memory"),
    ];
    let caption = format!("Tools {}. Median and percentile are approximate to a few percent", order.in_words());
    html! {
        (columns(&caption, headings, shown.iter().map(row).collect(), Some((&visit.query, order))))
        @if tools.len() > ROWS { p.quiet { "and " (tools.len() - ROWS) " more" } }
    }
}

/// Lists the times with calls, the latest first.
fn times(figures: &Figures) -> Markup {
    let Some(axis) = figures.axis else { return html! {} };
    let most = figures.times.iter().map(|cell| cell.calls).max().unwrap_or_default();
    let unit = Unit::of_durations(figures.times.iter().map(|cell| cell.ms));
    let size = Unit::of_sizes(figures.times.iter().map(|cell| cell.memory));
    let rows = figures.times.iter().enumerate().rev().filter(|(_, cell)| cell.calls > 0).map(|(bucket, cell)| {
        [
            layout::time(&axis.time(bucket)),
            bar(cell.calls as f64, most as f64),
            html! { (Unit::count().show(cell.calls as f64)) },
            html! { (Unit::count().show(cell.failures as f64)) },
            html! { (unit.show(cell.ms)) },
            html! { (size.show(cell.memory as f64)) },
        ]
    });
    let headings = [
        Column::text("From (UTC)"),
        Column::text("Share"),
        Column::number("Calls"),
        Column::number("Failures"),
        Column::number(unit.heading("Whole time")),
        Column::number(size.heading("Peak memory")),
    ];
    let caption = format!("Each row is {}; rows without calls are left out", length(axis.width));
    columns(&caption, headings, rows.collect(), None)
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
            (columns("Denied capabilities, most denials first", denied_columns(), rows.collect(), None))
            @if denied.len() > ROWS { p.quiet { "and " (denied.len() - ROWS) " more" } }
        }
    }
}

fn denied_columns() -> [Column; 3] {
    [Column::text("Capability"), Column::number("Denials"), Column::text("Allowed by")]
}

/// Length of a bucket in words.
fn length(ms: i64) -> String {
    let units = [(DAY, "day"), (3_600_000, "hour"), (60_000, "minute")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ms % unit == 0).unwrap_or((1, "millisecond"));
    counted(ms / unit, name)
}
