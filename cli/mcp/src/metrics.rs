//! Figures of a server in the OpenMetrics text format. They name tools and outcomes, tokens only where the operator wants it, and no
//! argument.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolcrib::ToolResult;
use toolcrib_shared_state::{StoreObserver, StoreOperation};

use super::process_metrics::ProcessMetrics;

/// Type of the figures.
pub(super) const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the times, in seconds.
const BUCKETS: [f64; 14] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];
/// Maximum number of tools that have their own figures; further ones are counted together. A reload can bring other tools.
const MAX_TOOLS: usize = 1000;
/// Maximum number of figures that differ in tool, outcome and token; calls of further ones are counted together.
const MAX_SERIES: usize = 10_000;
/// Label for further tools and tokens, which is the name of none.
const OTHER: &str = "(other)";
/// Entry point of all calls over HTTP, as in their records.
const DOOR: &str = "mcp";

type Times<L> = Family<L, Histogram, fn() -> Histogram>;

/// Figures since the start of a server.
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<Vec<Label>, Counter>,
    whole: Times<ToolLabels>,
    waited: Histogram,
    ran: Histogram,
    pub(super) requests: Counter,
    refused: Family<RefusalLabels, Counter>,
    connections: Gauge,
    running: Gauge,
    store: Times<StoreLabels>,
    store_failures: Family<StoreFailureLabels, Counter>,
    /// `true` if the calls of each token are counted.
    by_token: bool,
    tools: Mutex<HashSet<String>>,
    /// Number of figures with different labels.
    series: AtomicUsize,
}

/// Name and value of a label.
type Label = (&'static str, String);

/// Labels of an operation; their number is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreFailureLabels {
    operation: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    status: u32,
}

impl Metrics {
    /// Begins to count; with `by_token`, the calls of each token too.
    pub(super) fn new(by_token: bool) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let mut all = Self {
            registry: Registry::default(),
            calls: Family::default(),
            whole: Family::new_with_constructor(histogram),
            waited: histogram(),
            ran: histogram(),
            requests: Counter::default(),
            refused: Family::default(),
            connections: Gauge::default(),
            running: Gauge::default(),
            store: Family::new_with_constructor(histogram),
            store_failures: Family::default(),
            by_token,
            tools: Mutex::default(),
            series: AtomicUsize::new(0),
        };
        let registry = &mut all.registry;
        registry.register("toolcrib_calls", "Calls of clients that have ended", all.calls.clone());
        registry.register("toolcrib_call_seconds", "Time from the start to the end of calls", all.whole.clone());
        let help = "Time that calls waited for their turn and for answers from users";
        registry.register("toolcrib_call_wait_seconds", help, all.waited.clone());
        registry.register("toolcrib_call_run_seconds", "Time of calls without their waits", all.ran.clone());
        registry.register("toolcrib_http_requests", "Requests over HTTP", all.requests.clone());
        registry.register("toolcrib_http_refused", "Refused requests over HTTP", all.refused.clone());
        registry.register("toolcrib_http_connections", "Open connections", all.connections.clone());
        registry.register("toolcrib_http_running", "Running requests of the protocol", all.running.clone());
        registry.register("toolcrib_store_seconds", "Time of operations of the shared store", all.store.clone());
        let help = "Operations of the shared store that failed";
        registry.register("toolcrib_store_failures", help, all.store_failures.clone());
        registry.register_collector(Box::new(ProcessMetrics));
        all
    }

    /// Counts a call by a client with this token. A name without a tool (not `is_known`) is the client's, and may be any.
    pub(super) fn count(&self, result: &ToolResult, is_known: bool, token: &str) {
        let receipt = &result.receipt;
        let tool = if is_known { self.tool(&receipt.tool) } else { String::new() };
        self.count_call(&tool, receipt.outcome.as_str(), token);
        let seconds = |milliseconds: f64| (milliseconds / 1000.0).max(0.0);
        self.whole.get_or_create(&ToolLabels { tool }).observe(seconds(receipt.ms));
        self.waited.observe(seconds(receipt.waited_ms));
        self.ran.observe(seconds(receipt.ms - receipt.waited_ms));
    }

    fn count_call(&self, tool: &str, outcome: &str, token: &str) {
        let token = self.by_token.then(|| ("token", token.to_owned()));
        let labels =
            [("tool", tool), ("outcome", outcome), ("door", DOOR)].map(|(name, value)| (name, value.to_owned()));
        let mut labels: Vec<Label> = labels.into_iter().chain(token).collect();
        if let Some(known) = self.calls.get(&labels) {
            known.inc();
            return;
        }
        if self.series.fetch_add(1, Relaxed) >= MAX_SERIES {
            labels
                .iter_mut()
                .filter(|(name, _)| ["tool", "token"].contains(name))
                .for_each(|(_, value)| *value = OTHER.to_owned());
        }
        self.calls.get_or_create(&labels).inc();
    }

    /// Counts a refused request by the status of its answer.
    pub(super) fn refuse(&self, status: u16) {
        self.refused.get_or_create(&RefusalLabels { status: status.into() }).inc();
    }

    /// Returns the label of a tool.
    fn tool(&self, name: &str) -> String {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if !tools.contains(name) {
            if tools.len() >= MAX_TOOLS {
                return OTHER.to_owned();
            }
            tools.insert(name.to_owned());
        }
        name.to_owned()
    }

    /// Formats the figures, with the numbers of running requests and connections.
    pub(super) fn text(&self, running: usize, connections: usize) -> String {
        self.running.set(running as i64);
        self.connections.set(connections as i64);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl StoreObserver for Metrics {
    fn operated(&self, operation: StoreOperation, time: Duration, failure: Option<&'static str>) {
        let operation = operation.as_str();
        self.store.get_or_create(&StoreLabels { operation }).observe(time.as_secs_f64());
        if let Some(reason) = failure {
            self.store_failures.get_or_create(&StoreFailureLabels { operation, reason }).inc();
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("by_token", &self.by_token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tools_with_figures_is_bounded() {
        let metrics = Metrics::new(false);
        for number in 0..MAX_TOOLS {
            assert_eq!(metrics.tool(&format!("t{number}")), format!("t{number}"));
        }
        assert_eq!((metrics.tool("one more").as_str(), metrics.tool("t0").as_str()), (OTHER, "t0"));
    }

    #[test]
    fn the_number_of_combinations_is_bounded() {
        let metrics = Metrics::new(true);
        for number in 0..MAX_SERIES + 2 {
            metrics.count_call("echo", "ok", &number.to_string());
        }
        metrics.count_call("echo", "ok", "0");
        let text = metrics.text(0, 0);
        let lines = text.lines().filter(|line| line.starts_with("toolcrib_calls_total{"));
        assert_eq!(lines.count(), MAX_SERIES + 1);
        let other =
            format!("toolcrib_calls_total{{tool=\"{OTHER}\",outcome=\"ok\",door=\"mcp\",token=\"{OTHER}\"}} 2\n");
        assert!(text.contains(&other) && text.contains("outcome=\"ok\",door=\"mcp\",token=\"0\"} 2\n"));
    }

    #[test]
    fn every_figure_has_a_help_text_and_labels_are_escaped() {
        let metrics = Metrics::new(true);
        metrics.refuse(429);
        let labels = vec![("tool", "a\"\n".to_owned()), ("outcome", "ok".to_owned()), ("token", "ada".to_owned())];
        metrics.calls.get_or_create(&labels).inc();
        metrics.whole.get_or_create(&ToolLabels { tool: "a".to_owned() }).observe(1.0);
        metrics.operated(StoreOperation::Claim, Duration::from_secs(1), Some("busy"));
        let text = metrics.text(1, 2);
        assert!(text.contains("toolcrib_calls_total{tool=\"a\\\"\\n\",outcome=\"ok\",token=\"ada\"} 1\n"), "{text}");
        assert!(text.contains("toolcrib_http_refused_total{status=\"429\"} 1\n"), "{text}");
        assert!(text.contains("toolcrib_http_running 1\n") && text.contains("toolcrib_http_connections 2\n"), "{text}");
        let of = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
        assert_eq!((of("# HELP"), of("# TYPE"), of("# EOF")), (18, 18, 1));
    }
}
