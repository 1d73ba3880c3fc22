//! Charts of the audit log: calls, failures, time and memory by tool over time, the figures of each tool, and denials by
//! capability. The log is read once, as a stream.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib::audit::Day;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{counted, one_line, shortened};

use super::drawing::{Bar, Chart, share, swatch};
use super::figures::{Cell, Figures, OTHERS, Span, ToolFigures};
use super::history::Filter;
use super::layout::{self, ROWS, choice, field, table};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Tools with a color of their own; all others share one.
const MAX_SERIES: usize = 6;
/// Maximum characters of a name beside others.
const MAX_NAME: usize = 40;
const TOTALS: [&str; 8] =
    ["Tool", "Calls", "Failures", "Median", "99th percentile", "Maximum", "Whole time", "Peak memory"];
const DENIED: [&str; 4] = ["Capability", "Denials", "Share", "Allowed by"];

/// Measure that sorts the table of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Percentile,
    Median,
    Max,
    Whole,
    Calls,
    Failures,
    Memory,
}

impl Measure {
    const ALL: [Self; 7] =
        [Self::Percentile, Self::Median, Self::Max, Self::Whole, Self::Calls, Self::Failures, Self::Memory];

    fn name(self) -> &'static str {
        match self {
            Self::Percentile => "99th percentile",
            Self::Median => "median",
            Self::Max => "maximum",
            Self::Whole => "whole time",
            Self::Calls => "calls",
            Self::Failures => "failures",
            Self::Memory => "memory",
        }
    }

    fn caption(self) -> String {
        let order = match self {
            Self::Percentile | Self::Median | Self::Max => "Slowest tools first, by the ",
            _ => "Tools with the largest number first, by ",
        };
        format!("{order}{}. Median and percentile are right to a few percent", self.name())
    }

    fn of(self, tool: &ToolFigures) -> f64 {
        match self {
            Self::Percentile => tool.durations.quantile(0.99),
            Self::Median => tool.durations.quantile(0.5),
            Self::Max => tool.durations.max(),
            Self::Whole => tool.whole.ms,
            Self::Calls => tool.whole.calls as f64,
            Self::Failures => tool.whole.failures as f64,
            Self::Memory => tool.whole.memory as f64,
        }
    }
}

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let query = &visit.query;
    let span = Span::ALL.into_iter().find(|span| query.get("span") == Some(span.name())).unwrap_or(Span::Day);
    let by = Measure::ALL.into_iter().find(|by| query.get("by") == Some(by.name())).unwrap_or(Measure::Percentile);
    let now = Timestamp::now().as_millisecond();
    let mut figures = Figures::new(span, now);
    let read = match Filter::read(query) {
        Ok(filter) => Ok(within(filter, span, now).each(views, visit, |entry| figures.add(&entry))?),
        Err(problem) => Err(problem),
    };
    let spans = Span::ALL.map(Span::name).into_iter().filter(|name| *name != Span::Day.name());
    let measures = Measure::ALL.map(Measure::name).into_iter().skip(1);
    let content = html! {
        h1 { "Charts" }
        form.filter role="search" {
            (choice("span", "Time until now", Span::Day.name(), spans, query.get("span")))
            (field("tool", "Tool", "fs_*", query))
            (choice("by", "Sort tools by", Measure::Percentile.name(), measures, query.get("by")))
            button { "Show" }
        }
        div id="figures" data-live {
            @match read {
                Err(problem) => p.problem role="alert" { (layout::line(&problem, 400)) },
                Ok(_) if figures.tools.is_empty() => p.empty { "No call is logged in this time." },
                Ok(_) => (charts(visit, &figures, by)),
            }
        }
    };
    Ok(Page { title: "Charts".to_owned(), tab: Tab::Charts, content })
}

/// Narrows a filter to today where the span began today, so that no other file is read.
fn within(filter: Filter, span: Span, now: i64) -> Filter {
    let today = Day::of(SystemTime::now());
    let first = span.start(now).and_then(|start| Timestamp::from_millisecond(start).ok());
    if first.is_some_and(|first| Day::of(first.into()) == today) { filter.on(today) } else { filter }
}

fn charts(visit: &Visit, figures: &Figures, by: Measure) -> Markup {
    let Some(axis) = figures.axis else { return html! {} };
    // Those with the most calls have a color, in the same order in all charts.
    let mut named: Vec<(&String, &ToolFigures)> = figures.tools.iter().filter(|(name, _)| *name != OTHERS).collect();
    named.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.whole.calls));
    named.truncate(MAX_SERIES);
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let series = |name: &str| names.iter().position(|one| *one == name).unwrap_or(MAX_SERIES);
    let whole = figures.whole();
    let bar = |bucket: usize, value: &dyn Fn(&Cell) -> f64, in_words: &dyn Fn(f64) -> String, adds: bool| {
        let mut all: Vec<(usize, &str, f64)> = figures
            .tools
            .iter()
            .map(|(name, tool)| (series(name), name.as_str(), value(&tool.cells[bucket])))
            .filter(|(_, _, value)| *value > 0.0)
            .collect();
        all.sort_by(|one, other| one.0.cmp(&other.0).then(other.2.total_cmp(&one.2)));
        let listed = |(_, name, value): &(usize, &str, f64)| format!("{} {}", short(name), in_words(*value));
        let parts_text = all.iter().map(listed).collect::<Vec<_>>().join(", ");
        // Peaks are not added: the bar is the highest of them.
        let parts: Vec<(usize, f64)> = if adds {
            let mut sums = BTreeMap::<usize, f64>::new();
            all.iter().for_each(|(series, _, value)| *sums.entry(*series).or_default() += value);
            sums.into_iter().collect()
        } else {
            all.iter().max_by(|one, other| one.2.total_cmp(&other.2)).map(|it| (it.0, it.2)).into_iter().collect()
        };
        let sum = parts.iter().map(|(_, value)| value).sum();
        (sum, Bar { time: shown_time(&axis.time(bucket)), text: in_words(sum), parts_text, parts })
    };
    let chart = |id, title, unit, value: &dyn Fn(&Cell) -> f64, in_words: &dyn Fn(f64) -> String, adds: bool| {
        let all: Vec<(f64, Bar)> = (0..axis.count).map(|bucket| bar(bucket, value, in_words, adds)).collect();
        let highest = all.iter().max_by(|one, other| one.0.total_cmp(&other.0));
        let summary = highest.map(|(most, bar)| {
            let text = if adds { in_words(value(&whole)) } else { in_words(*most) };
            format!("{text} in all; the most, {}, from {}", in_words(*most), bar.time)
        });
        let max = highest.map(|(most, _)| in_words(*most)).unwrap_or_default();
        let bars = all.into_iter().map(|(_, bar)| bar).collect();
        Chart { id, title, summary: summary.unwrap_or_default(), max, unit, bars }.draw()
    };
    let number = |value: f64| format!("{value:.0}");
    html! {
        p { (counted(whole.calls, "call")) ", " (counted(whole.failures, "failure")) " (every outcome but ok), "
            (layout::duration(whole.ms)) " in all. Each bar is " (length(axis.width)) "." }
        (totals(visit, figures, by))
        ul.legend aria-label="Colors of the charts" {
            @for (at, name) in names.iter().enumerate() { li { (swatch(at)) (layout::line(name, MAX_NAME)) } }
            @if figures.tools.len() > names.len() { li { (swatch(MAX_SERIES)) "all others" } }
        }
        div.charts {
            (chart("calls", "Calls", "Calls", &|cell| cell.calls as f64, &number, true))
            (chart("failures", "Failures", "Failures", &|cell| cell.failures as f64, &number, true))
            (chart("time", "Time in calls", "Time", &|cell| cell.ms, &layout::duration, true))
            (chart("memory", "Peak memory of a call", "Memory", &|cell| cell.memory as f64,
                &|bytes| rounded_size(bytes as u64), false))
        }
        h2 { "Denials by capability" }
        (denials(visit, figures))
    }
}

fn totals(visit: &Visit, figures: &Figures, by: Measure) -> Markup {
    let mut tools: Vec<(f64, &String, &ToolFigures)> =
        figures.tools.iter().map(|(name, tool)| (by.of(tool), name, tool)).collect();
    tools.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    let path = visit.path("calls");
    let row = |(_, name, tool): &(f64, &String, &ToolFigures)| {
        let ToolFigures { whole, durations, .. } = tool;
        [
            layout::link(&path, "tool", name, &layout::line(name, MAX_NAME)),
            html! { (whole.calls) },
            html! { (whole.failures) },
            html! { (layout::duration(durations.quantile(0.5))) },
            html! { (layout::duration(durations.quantile(0.99))) },
            html! { (layout::duration(durations.max())) },
            html! { (layout::duration(whole.ms)) },
            html! { (rounded_size(whole.memory)) },
        ]
    };
    html! {
        h2 { "Tools" }
        (table(&by.caption(), TOTALS, tools.iter().take(ROWS).map(row).collect()))
        @if tools.len() > ROWS { p.quiet { "and " (tools.len() - ROWS) " more" } }
    }
}

fn denials(visit: &Visit, figures: &Figures) -> Markup {
    let mut denied: Vec<_> = figures.denied.iter().collect();
    denied.sort_by(|one, other| other.1.count.cmp(&one.1.count).then(one.0.cmp(other.0)));
    let most = denied.first().map_or(0, |(_, denials)| denials.count);
    let path = visit.path("calls");
    let rows = denied.iter().take(ROWS).map(|(capability, denials)| {
        let shown = html! { code { (layout::line(capability, 120)) } };
        let flag = denials.flag.as_deref().map(|flag| html! { code { (layout::line(flag, 120)) } });
        [
            layout::link(&path, "q", capability, &shown),
            html! { (denials.count) },
            share(denials.count as f64, most as f64),
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

/// Name of a tool beside numbers.
fn short(name: &str) -> String {
    one_line(&shortened(name, MAX_NAME))
}

/// Time of a record or a bucket, to the minute.
fn shown_time(text: &str) -> String {
    text.get(..16).unwrap_or(text).replacen('T', " ", 1)
}

/// Length of a bucket in words.
fn length(ms: i64) -> String {
    let units = [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ms % unit == 0).unwrap_or((1, "millisecond"));
    counted(ms / unit, name)
}
