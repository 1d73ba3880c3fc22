//! Time line of the calls of a run: a row for each call, with its beginning, and a bar as long as its duration.

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib_base::render::counted;

use super::chart;
use super::layout;
use super::record::Record;
use super::states::word;
use super::table::{Column, columns};
use super::tally::MAX_MS;
use super::units::Unit;

/// Maximum calls in a time line.
const MAX_CALLS: usize = 200;

/// Calls of a run in the order of its messages.
#[derive(Default)]
pub(super) struct Timeline {
    calls: Vec<Call>,
    /// Number of calls without a time.
    unknown: usize,
    /// Number of further calls of tools.
    left_out: usize,
    unread: usize,
}

/// Call with its times in milliseconds.
struct Call {
    /// Address of its place in the page, or of its record.
    address: String,
    /// `true` if a tool made it.
    is_nested: bool,
    tool: String,
    outcome: String,
    begin: f64,
    ms: f64,
    waited: f64,
    cpu: f64,
    memory: u64,
}

impl Timeline {
    /// Adds a call of the model, by its record if it has just one.
    pub(super) fn add(&mut self, address: &str, records: &[Record]) {
        match records {
            [record] => self.add_record(address, record, false),
            _ => self.unknown += 1,
        }
    }

    /// Adds a call that a tool made.
    pub(super) fn add_nested(&mut self, address: &str, record: &Record) {
        self.add_record(address, record, true);
    }

    /// Counts calls that tools made and that are not added.
    pub(super) fn leave_out(&mut self, count: usize) {
        self.left_out += count;
    }

    /// Sets the number of calls of tools in the log that were not looked at.
    pub(super) fn unread(&mut self, count: usize) {
        self.unread = count;
    }

    fn add_record(&mut self, address: &str, record: &Record, is_nested: bool) {
        let Ok(end) = record.ts.parse::<Timestamp>() else {
            self.unknown += 1;
            return;
        };
        let length = |ms: f64| if ms.is_finite() { ms.clamp(0.0, MAX_MS) } else { 0.0 };
        let ms = length(record.ms);
        let begin = end.as_microsecond() as f64 / 1_000.0 - ms;
        self.calls.push(Call {
            address: address.to_owned(),
            is_nested,
            tool: record.tool.clone(),
            outcome: record.outcome.clone(),
            begin,
            ms,
            waited: length(record.more.waited_ms).min(ms),
            cpu: length(record.more.cpu_ms),
            memory: record.more.peak_memory_bytes,
        });
    }

    /// Shows the time line, if there is any call.
    pub(super) fn show(&self) -> Markup {
        let shown = &self.calls[..self.calls.len().min(MAX_CALLS)];
        let first = shown.iter().map(|call| call.begin).fold(f64::INFINITY, f64::min);
        let end = shown.iter().map(|call| call.begin + call.ms).fold(f64::NEG_INFINITY, f64::max);
        let times = || shown.iter().map(|call| call.begin - first).chain(shown.iter().map(|call| call.ms));
        let (time, size) = (Unit::of_durations(times()), Unit::of_sizes(shown.iter().map(|call| call.memory)));
        let headings = [
            Column::text("Call"),
            Column::text("Outcome"),
            Column::text("When"),
            Column::number(time.heading("Begin")),
            Column::number(time.heading("Duration")),
            Column::number(time.heading("Waited")),
            Column::number(time.heading("Computed")),
            Column::number(size.heading("Memory")),
        ];
        let rows = shown.iter().map(|call| row(call, (first, end - first), time, size)).collect();
        let caption = "Logged calls in order, nested calls below the call that made them. A bar begins with \
                       its wait, in amber";
        html! {
            @if !self.calls.is_empty() {
                h2 { "Time line" }
                (columns(caption, headings, rows, None))
                @let more = self.calls.len().saturating_sub(MAX_CALLS) + self.left_out;
                @if more > 0 { p.quiet { "and " (more) " more" } }
                @if self.unread > 0 {
                    p.quiet { (counted(self.unread, "call")) " of tools in the log, of this or other runs, were not looked at." }
                }
                @if self.unknown > 0 { p.quiet { (counted(self.unknown, "more call")) " without an audit record." } }
            }
        }
    }
}

fn row(call: &Call, (first, whole): (f64, f64), time: Unit, size: Unit) -> [Markup; 8] {
    let begin = call.begin - first;
    [
        html! {
            @if call.is_nested { span.quiet aria-hidden="true" { "↳ " } span.unseen { "made by a tool: " } }
            a href=(call.address) { (layout::cell(&call.tool, 60)) }
        },
        word(&call.outcome),
        chart::span(begin, call.waited, call.ms - call.waited, whole),
        html! { (time.show(begin)) },
        html! { (time.show(call.ms)) },
        html! { (time.show(call.waited)) },
        html! { (time.show(call.cpu)) },
        html! { (size.show(call.memory as f64)) },
    ]
}
