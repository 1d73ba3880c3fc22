//! State of all workers, by the service API. An answer of a stranger is bounded, and one that cannot be read is counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use tokio::time::timeout_at;

use crate::connection::Connection;
use crate::service::{SERVICE, STATS, StatsResponse};
use crate::subject::WorkerName;

/// Maximum number of workers that are listed.
const MAX_WORKERS: usize = 1000;
/// Maximum number of answers that are read.
const MAX_ANSWERS: usize = 4 * MAX_WORKERS;
/// Maximum bytes of an answer.
const MAX_BYTES: usize = 1 << 20;
/// Maximum bytes of all answers together.
const MAX_ALL_BYTES: usize = 32 << 20;
/// Maximum characters in a version or a tool's name.
const MAX_TEXT: usize = 256;

/// State of one worker, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetMember {
    /// Name of the worker.
    pub worker: WorkerName,
    /// Version of its program.
    pub version: String,
    /// Time of its start.
    pub started: String,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Number of calls at a time.
    pub places: u64,
    /// Number of running calls.
    pub in_flight: u64,
    /// Number of answered calls.
    pub answered: u64,
    /// Number of refused calls and offers.
    pub refused: u64,
    /// Number of offers without a free place.
    pub busy: u64,
    /// Number of calls that their callers ended.
    pub ended: u64,
    /// `true` if the worker takes no more calls and ends after the running ones.
    pub is_draining: bool,
}

/// Collects the states that workers report within `time`, and counts the answers that could not be read.
///
/// # Errors
///
/// The question cannot be sent.
pub async fn fleet(connection: &Connection, time: Duration) -> Result<(Vec<FleetMember>, usize), String> {
    let client = &connection.client;
    let inbox = client.new_inbox();
    let failed = |error: &dyn std::error::Error| format!("no connection to {}: {error}", connection.address());
    let mut answers = client.subscribe(inbox.clone()).await.map_err(|error| failed(&error))?;
    let question = format!("$SRV.STATS.{SERVICE}");
    client.publish_with_reply(question, inbox, "".into()).await.map_err(|error| failed(&error))?;
    let until = Instant::now() + time;
    let (mut workers, mut unread, mut bytes) = (BTreeMap::new(), 0, 0);
    for _ in 0..MAX_ANSWERS {
        let Ok(Some(answer)) = timeout_at(until.into(), answers.next()).await else { break };
        // Without any worker, the server answers at once.
        if answer.status.is_some() {
            break;
        }
        bytes += answer.payload.len();
        match member(&answer.payload) {
            Some(member) if workers.len() < MAX_WORKERS && bytes <= MAX_ALL_BYTES => {
                workers.insert(member.worker.to_string(), member);
            }
            _ => unread += 1,
        }
    }
    Ok((workers.into_values().collect(), unread))
}

/// Reads the state of a worker; `None` if it is malformed.
fn member(answer: &[u8]) -> Option<FleetMember> {
    if answer.len() > MAX_BYTES {
        return None;
    }
    let stats: StatsResponse = serde_json::from_slice(answer).ok()?;
    let short = |text: String| text.chars().take(MAX_TEXT).collect::<String>();
    let [endpoint] = <[_; 1]>::try_from(stats.endpoints).ok()?;
    if stats.r#type != STATS || stats.name != SERVICE {
        return None;
    }
    let data = endpoint.data;
    Some(FleetMember {
        worker: stats.id.parse().ok()?,
        version: short(stats.version),
        started: short(stats.started),
        tools: data.tools.into_iter().take(crate::serve::MAX_TOOLS).map(short).collect(),
        places: data.places,
        in_flight: data.in_flight,
        answered: data.answered,
        refused: data.refused,
        busy: data.busy,
        ended: data.ended,
        is_draining: data.draining,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_malformed_or_too_large_is_not_read() {
        let state = |id: &str, more: &str| {
            format!(
                r#"{{"type":"{STATS}","name":"{SERVICE}","id":"{id}","version":"1","started":"now","endpoints":[{{"name":"calls",
                "subject":"s","queue_group":"q","num_requests":1,"num_errors":0,"last_error":"","processing_time":1,
                "average_processing_time":1,"data":{{"tools":["a"],"places":2,"inFlight":1,"answered":3,"refused":4,"busy":5,
                "ended":6}}}}]{more}}}"#
            )
        };
        let read = member(state("w-1", "").as_bytes()).unwrap();
        assert_eq!((read.worker.as_str(), read.places, read.in_flight, read.busy), ("w-1", 2, 1, 5));
        assert!(!read.is_draining, "an earlier version says nothing about it");
        let draining = state("w-1", "").replace(r#""ended":6"#, r#""ended":6,"draining":true"#);
        assert!(member(draining.as_bytes()).unwrap().is_draining);
        assert_eq!(member(state("w.1", "").as_bytes()), None);
        let long = format!(r#","more":"{}""#, "x".repeat(MAX_BYTES));
        assert_eq!(member(state("w-1", &long).as_bytes()), None);
        assert_eq!(member(b"{}"), None);
        assert_eq!(member(state("w-1", "").replace(SERVICE, "other").as_bytes()), None);
    }
}
