//! A trace of the work for an OpenTelemetry collector: spans by the semantic conventions for generative AI, sent by OTLP
//! over HTTP. Nothing is made and nothing is sent unless a collector is named, and nothing that goes wrong here changes
//! how the work ends.
//!
//! | span | one for each |
//! |---|---|
//! | `invoke_agent` | run, and task that was handed on |
//! | `chat MODEL` | request to the model, repeated ones too |
//! | `execute_tool NAME` | call |
//!
//! Names without `toolcrib.` are those of the conventions, which are still in development
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>).

mod agent;
mod calls;
mod export;
mod otlp;
mod span;

use std::sync::Arc;

use toolcrib::observe::Observer;

use crate::agent::settings::misuse;
use crate::http;
use crate::options::RECORDS;
use crate::render;

pub(crate) use agent::AgentSpan;

use calls::Calls;
use export::{Exporter, Queue};
use span::{Place, new_id, new_trace};

const EXAMPLE: &str = "http://localhost:4318";

/// Where a trace goes.
#[derive(Debug, clap::Args)]
pub(crate) struct TelemetryOptions {
    /// Send a trace to the OpenTelemetry collector at this address, to which `/v1/traces` is appended: times, names and
    /// outcomes, no arguments and no results
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true, help_heading = RECORDS)]
    otlp: Option<String>,
}

/// What a trace is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// A run, with its requests and calls.
    Agent,
    /// A single call.
    Call,
}

/// A trace under way, or none.
pub(crate) struct Telemetry(Option<Trace>);

struct Trace {
    exporter: Exporter,
    queue: Queue,
    place: Place,
    /// The span of the run, where there is one.
    agent: Option<u64>,
}

impl TelemetryOptions {
    /// Starts a trace where a collector is named.
    pub(crate) fn start(&self, root: Root) -> anyhow::Result<Telemetry> {
        let Some(collector) = self.otlp.as_deref().map(str::trim).filter(|url| !url.is_empty()) else {
            return Ok(Telemetry(None));
        };
        let (exporter, queue) = Exporter::start(http::below(
            &http::address("--otlp", collector, EXAMPLE).map_err(misuse)?,
            &["v1", "traces"],
        )?)?;
        let place = Place { trace: new_trace(), parent: None };
        Ok(Telemetry(Some(Trace { exporter, queue, place, agent: (root == Root::Agent).then(new_id) })))
    }
}

impl Telemetry {
    /// Who watches the calls.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        let Trace { queue, place, agent, .. } = self.0.as_ref()?;
        Some(Arc::new(Calls::new(queue.clone(), Place { parent: *agent, ..*place })))
    }

    /// Who watches the run.
    pub(crate) fn agent(&self) -> Option<AgentSpan> {
        let Trace { queue, place, agent, .. } = self.0.as_ref()?;
        Some(AgentSpan::new(queue.clone(), *place, (*agent)?))
    }

    /// Sends what was not sent yet, in bounded time, and warns of what was lost.
    pub(crate) async fn finish(self) {
        if let Some(trace) = self.0
            && let Some(loss) = trace.exporter.finish().await
        {
            render::warning(&loss);
        }
    }
}
