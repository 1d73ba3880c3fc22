//! Server figures in the Prometheus text format. They name outcomes, and no client, tool or argument.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use toolcrib::ToolResult;

/// Figures since the start of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: Mutex<BTreeMap<String, u64>>,
    /// Total duration of all calls in microseconds.
    micros: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Metrics {
    /// Counts a call.
    pub(super) fn count(&self, result: &ToolResult) {
        let outcome = serde_json::to_value(result.receipt.outcome).unwrap_or_default();
        let outcome = outcome.as_str().unwrap_or("other").to_owned();
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
        // Milliseconds of a call are far below the range.
        self.micros.fetch_add((result.receipt.ms * 1000.0) as u64, Relaxed);
    }

    /// Formats the figures, with the numbers of running requests and connections.
    pub(super) fn text(&self, running: usize, connections: usize) -> String {
        let mut text = String::from("# TYPE toolcrib_calls_total counter\n");
        // Writing to a string cannot fail.
        for (outcome, calls) in self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(text, "toolcrib_calls_total{{outcome=\"{outcome}\"}} {calls}");
        }
        let seconds = self.micros.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "# TYPE toolcrib_call_seconds_total counter\ntoolcrib_call_seconds_total {seconds}");
        for (name, kind, value) in [
            ("toolcrib_http_requests_total", "counter", self.requests.load(Relaxed)),
            ("toolcrib_http_refused_total", "counter", self.refused.load(Relaxed)),
            ("toolcrib_http_connections", "gauge", connections as u64),
            ("toolcrib_http_running", "gauge", running as u64),
        ] {
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}
