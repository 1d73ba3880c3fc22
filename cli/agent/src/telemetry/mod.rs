//! Traces for an OpenTelemetry collector: spans by the semantic conventions for generative AI, sent by OTLP
//! over HTTP. Nothing is recorded or sent unless a collector is named, and errors here never affect the
//! command.
//!
//! | span | one for each |
//! |---|---|
//! | `invoke_agent` | run and delegated task |
//! | `chat MODEL` | request to the model, including retries |
//! | `execute_tool NAME` | call |
//!
//! Names without `toolcrib.` come from the conventions, which are still in development
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>).

mod agent;
mod calls;
mod export;
mod otlp;
mod span;

use std::sync::Arc;

use toolcrib::observe::Observer;
use toolcrib_base::headings::RECORDS;
use toolcrib_base::http;
use toolcrib_base::render::{self, usage_error};

pub(crate) use agent::AgentSpan;

use calls::Calls;
use export::{Exporter, Queue};
use span::{Place, new_id};

const EXAMPLE: &str = "http://localhost:4318";

/// Option for the trace collector.
#[derive(Debug, Clone, clap::Args)]
pub struct TelemetryOptions {
    /// Send traces to the OpenTelemetry collector at this URL (`/v1/traces` is appended): times, names and outcomes, but
    /// no arguments or results
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true, help_heading = RECORDS)]
    otlp: Option<String>,
}

/// Root of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A run, with its requests and calls.
    Agent,
    /// A single call.
    Call,
    /// Calls of other programs: each belongs to its caller's trace, or to its own.
    Server,
}

/// A running trace, or none.
pub struct Telemetry(Option<Trace>);

struct Trace {
    exporter: Exporter,
    queue: Queue,
    place: Place,
    /// Identifier of the run's span, if any.
    agent: Option<u64>,
    /// Place of the calls, if they belong to one trace.
    calls: Option<Place>,
}

impl TelemetryOptions {
    /// Starts a trace if a collector is named.
    pub fn start(&self, root: Root) -> anyhow::Result<Telemetry> {
        let Some(collector) = self.otlp.as_deref().map(str::trim).filter(|url| !url.is_empty()) else {
            return Ok(Telemetry(None));
        };
        let (exporter, queue) = Exporter::start(http::below(
            &http::address("--otlp", collector, EXAMPLE).map_err(usage_error)?,
            &["v1", "traces"],
        )?)?;
        let (place, agent) = (Place::root(), (root == Root::Agent).then(new_id));
        let calls = (root != Root::Server).then_some(Place { parent: agent, ..place });
        Ok(Telemetry(Some(Trace { exporter, queue, place, agent, calls })))
    }
}

impl Telemetry {
    /// Returns the observer of calls.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        let Trace { queue, calls, .. } = self.0.as_ref()?;
        Some(Arc::new(Calls::new(queue.clone(), *calls)))
    }

    /// Returns the span of the run.
    pub(crate) fn agent(&self) -> Option<AgentSpan> {
        let Trace { queue, place, agent, .. } = self.0.as_ref()?;
        Some(AgentSpan::new(queue.clone(), *place, (*agent)?))
    }

    /// Sends the remaining spans in bounded time and warns about lost ones.
    pub async fn finish(self) {
        if let Some(trace) = self.0
            && let Some(loss) = trace.exporter.finish().await
        {
            render::warning(&loss);
        }
    }
}
