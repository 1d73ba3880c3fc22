//! Time line of the calls of a run: a row for each call, with a bar from its beginning to its end. Pauses between calls, in which
//! the model answers or the run rests, are shortened, so that short calls can be seen.

use jiff::Timestamp;
use maud::{Markup, html};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::counted;

use super::drawing::period;
use super::figures::MAX_MS;
use super::layout::{self, table, tone, word};
use super::record::Record;

/// Maximum calls in a time line.
const MAX_CALLS: usize = 200;
/// Length of the longest pause as a share of the time in calls.
const MAX_PAUSE: f64 = 0.05;
const HEADINGS: [&str; 6] = ["Call", "Begin", "Duration", "Time line", "Outcome", "Used"];

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

/// Place of a bar, from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Place {
    at: f64,
    waited: f64,
    length: f64,
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
        let places = places(&self.calls);
        let first = self.calls.iter().map(|call| call.begin).fold(f64::INFINITY, f64::min);
        let rows = self.calls.iter().zip(places).take(MAX_CALLS).map(|(call, place)| row(call, place, first)).collect();
        let caption = "Calls with a record, in the order of the conversation, each before those that it made; pauses between them are shortened";
        html! {
            @if !self.calls.is_empty() {
                h2 { "Time line" }
                (table(caption, HEADINGS, rows))
                @let more = self.calls.len().saturating_sub(MAX_CALLS) + self.left_out;
                @if more > 0 { p.quiet { "and " (more) " more" } }
                @if self.unread > 0 {
                    p.quiet { (counted(self.unread, "call")) " of tools in the log, of this or other runs, were not looked at." }
                }
                @if self.unknown > 0 { p.quiet { (counted(self.unknown, "more call")) " without a record of its own." } }
            }
        }
    }
}

fn row(call: &Call, place: Place, first: f64) -> [Markup; 6] {
    [
        html! {
            @if call.is_nested { span.quiet aria-hidden="true" { "↳ " } span.unseen { "made by a tool: " } }
            a href=(call.address) { (layout::line(&call.tool, 60)) }
        },
        html! { "+ " (layout::duration(call.begin - first)) },
        html! { (layout::duration(call.ms)) },
        period(tone(&call.outcome), place.at, place.waited, place.length),
        word(&call.outcome),
        html! {
            span.quiet {
                @if call.waited >= 0.1 { "waited " (layout::duration(call.waited)) ", " }
                "computed " (layout::duration(call.cpu)) ", " (rounded_size(call.memory))
            }
        },
    ]
}

/// Computes the places of the bars.
fn places(calls: &[Call]) -> Vec<Place> {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by(|one, other| calls[*one].begin.total_cmp(&calls[*other].begin));
    let Some(first) = order.first().map(|at| calls[*at].begin) else { return Vec::new() };
    let pauses = |visit: &mut dyn FnMut(usize, f64)| {
        let mut end = first;
        for at in &order {
            visit(*at, (calls[*at].begin - end).max(0.0));
            end = end.max(calls[*at].begin + calls[*at].ms);
        }
        end
    };
    let mut paused = 0.0;
    let end = pauses(&mut |_, pause| paused += pause);
    let max_pause = ((end - first - paused) * MAX_PAUSE).max(0.1);
    let (mut removed, mut starts) = (0.0, vec![0.0; calls.len()]);
    pauses(&mut |at, pause| {
        removed += (pause - max_pause).max(0.0);
        starts[at] = calls[at].begin - first - removed;
    });
    let whole = (end - first - removed).max(0.1);
    let place =
        |(call, start): (&Call, f64)| Place { at: start / whole, waited: call.waited / whole, length: call.ms / whole };
    calls.iter().zip(starts).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(begin: f64, ms: f64) -> Call {
        let (address, tool, outcome) = Default::default();
        Call { address, is_nested: false, tool, outcome, begin, ms, waited: 0.0, cpu: 0.0, memory: 0 }
    }

    #[test]
    fn pauses_are_shortened_and_calls_beside_one_another_overlap() {
        let places = places(&[call(1_000.0, 50.0), call(1_000.0, 25.0), call(9e9, 50.0)]);
        let rounded = |place: &Place| ((place.at * 1e3).round(), (place.length * 1e3).round());
        // 50 + 5 + 50 milliseconds.
        assert_eq!(places.iter().map(rounded).collect::<Vec<_>>(), [(0.0, 476.0), (0.0, 238.0), (524.0, 476.0)]);
    }

    #[test]
    fn bars_stay_inside_whatever_the_times() {
        assert!(places(&[]).is_empty());
        for calls in [[call(0.0, 0.0), call(0.0, 0.0)], [call(-1e15, MAX_MS), call(1e15, 0.0)]] {
            for place in places(&calls) {
                assert!(place.at >= 0.0 && place.at + place.length <= 1.000_001, "{place:?}");
            }
        }
    }
}
