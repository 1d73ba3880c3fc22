//! NATS service API (<https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-32.md>): discovery, ping and
//! statistics of a worker, for `nats micro`, `toolcrib fleet status` and other programs.

use std::sync::Arc;

use async_nats::{Client, Message, SubscribeError, Subscriber};
use futures::stream::{SelectAll, select_all};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::serve::ServedTool;
use crate::statistics::{Counts, Statistics};
use crate::subject::{QUEUE, WorkerName, is_inbox, offers};

/// Name of the service.
pub(crate) const SERVICE: &str = "toolcrib-worker";
/// Version of this program.
const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Type of a ping's answer; the others are built alike.
const PING: &str = "io.nats.micro.v1.ping_response";
const INFO: &str = "io.nats.micro.v1.info_response";
/// Type of the statistics.
pub(crate) const STATS: &str = "io.nats.micro.v1.stats_response";
/// Name of the one endpoint in the statistics.
const ENDPOINT: &str = "calls";

/// Service of a worker.
pub(crate) struct Service {
    id: WorkerName,
    tools: Vec<ServedTool>,
    places: usize,
    started: Timestamp,
    statistics: Arc<Statistics>,
}

/// Answer to a ping.
#[derive(Debug, Serialize)]
struct PingResponse<'a> {
    r#type: &'a str,
    name: &'a str,
    id: &'a str,
    version: &'a str,
    metadata: ServiceMetadata,
}

/// Answer to a request for information.
#[derive(Debug, Serialize)]
struct InfoResponse<'a> {
    r#type: &'a str,
    name: &'a str,
    id: &'a str,
    version: &'a str,
    metadata: ServiceMetadata,
    description: &'a str,
    endpoints: Vec<InfoEndpoint<'a>>,
}

/// One tool in the information.
#[derive(Debug, Serialize)]
struct InfoEndpoint<'a> {
    name: &'a str,
    subject: String,
    queue_group: &'a str,
}

/// Answer to a request for statistics.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatsResponse {
    pub(crate) r#type: String,
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) started: String,
    pub(crate) endpoints: Vec<StatsEndpoint>,
}

/// Statistics for all calls at a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatsEndpoint {
    pub(crate) name: String,
    subject: String,
    queue_group: String,
    num_requests: u64,
    num_errors: u64,
    last_error: String,
    processing_time: u64,
    average_processing_time: u64,
    pub(crate) data: StatsData,
}

/// Figures of a worker in addition to the service API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatsData {
    pub(crate) tools: Vec<String>,
    pub(crate) places: u64,
    pub(crate) in_flight: u64,
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) busy: u64,
    pub(crate) ended: u64,
    /// `true` if the worker takes no more calls; earlier versions do not say it.
    #[serde(default)]
    pub(crate) draining: bool,
}

/// Facts about a worker.
#[derive(Debug, Serialize)]
struct ServiceMetadata {
    system: &'static str,
    architecture: &'static str,
}

const HERE: ServiceMetadata = ServiceMetadata { system: std::env::consts::OS, architecture: std::env::consts::ARCH };

impl Service {
    /// Creates the service of a worker.
    pub(crate) fn new(id: WorkerName, tools: &[ServedTool], places: usize, statistics: Arc<Statistics>) -> Self {
        Self { id, tools: tools.to_vec(), places, started: Timestamp::now(), statistics }
    }

    /// Subscribes to the questions: to all services, to all workers, and to this one.
    pub(crate) async fn subscribe(&self, client: &Client) -> Result<SelectAll<Subscriber>, SubscribeError> {
        let subjects = ["$SRV.*".to_owned(), format!("$SRV.*.{SERVICE}"), format!("$SRV.*.{SERVICE}.{}", self.id)];
        let mut subscriptions = Vec::with_capacity(subjects.len());
        for subject in subjects {
            subscriptions.push(client.subscribe(subject).await?);
        }
        Ok(select_all(subscriptions))
    }

    /// Answers a question.
    pub(crate) async fn answer(&self, client: &Client, question: &Message) {
        let Some(inbox) = question.reply.as_ref().filter(|subject| is_inbox(subject)) else { return };
        let answer = match question.subject.split('.').nth(1) {
            Some("PING") => self.ping(),
            Some("INFO") => self.info(),
            Some("STATS") => serde_json::to_vec(&self.stats()),
            _ => return,
        };
        if let Ok(answer) = answer {
            let _ = client.publish(inbox.clone(), answer.into()).await;
        }
    }

    fn ping(&self) -> serde_json::Result<Vec<u8>> {
        let (id, version) = (self.id.as_str(), PROGRAM_VERSION);
        serde_json::to_vec(&PingResponse { r#type: PING, name: SERVICE, id, version, metadata: HERE })
    }

    fn info(&self) -> serde_json::Result<Vec<u8>> {
        let endpoints = self.tools.iter().filter_map(|ServedTool { name, digest }| {
            Some(InfoEndpoint { name, subject: offers(digest, name)?, queue_group: QUEUE })
        });
        serde_json::to_vec(&InfoResponse {
            r#type: INFO,
            name: SERVICE,
            id: self.id.as_str(),
            version: PROGRAM_VERSION,
            metadata: HERE,
            description: "runs tools of toolcrib",
            endpoints: endpoints.collect(),
        })
    }

    fn stats(&self) -> StatsResponse {
        let Counts { answered, refused, busy, ended, in_flight, nanoseconds, is_draining } = self.statistics.counts();
        let requests = answered + refused + busy + ended;
        let endpoint = StatsEndpoint {
            name: ENDPOINT.to_owned(),
            subject: "toolcrib.v1.call.>".to_owned(),
            queue_group: QUEUE.to_owned(),
            num_requests: requests,
            num_errors: refused + busy,
            last_error: String::new(),
            processing_time: nanoseconds,
            average_processing_time: nanoseconds / (answered + ended).max(1),
            data: StatsData {
                tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
                places: self.places as u64,
                in_flight,
                answered,
                refused,
                busy,
                ended,
                draining: is_draining,
            },
        };
        StatsResponse {
            r#type: STATS.to_owned(),
            name: SERVICE.to_owned(),
            id: self.id.to_string(),
            version: PROGRAM_VERSION.to_owned(),
            started: self.started.to_string(),
            endpoints: vec![endpoint],
        }
    }
}
