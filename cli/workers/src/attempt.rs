//! One attempt to make a call: an offer to the workers that serve its tool, and the conversation with the one that accepts it.

use std::time::{Duration, Instant};

use async_nats::{Client, Message, StatusCode};
use futures::StreamExt as _;
use tokio::runtime::Handle;
use tokio::time::timeout_at;
use toolcrib::worker::{WorkerAnswer, WorkerCall};

use crate::assembly::{Assembly, parts};
use crate::message::{CallerMessage, MAX_REASON, Offer, VERSION, WorkerMessage, decode, encode};
use crate::report::{self, max_report};
use crate::subject::{WorkerName, control, new_call};

/// Number of reports that a worker may send at once.
const MAX_REPORTS: u64 = 64;
/// Number of reports that a worker may send in addition for each second.
const MAX_REPORTS_A_SECOND: u64 = 50;

/// End of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptEnd {
    /// The worker ran the call.
    Answer(WorkerAnswer),
    /// No worker serves the tool.
    NoWorker,
    /// The worker has no free place.
    Busy(WorkerName),
    /// The worker does not take the call.
    Refused(WorkerName, String),
    /// No message arrived for too long.
    Lost(Option<WorkerName>),
    /// The deadline passed.
    Late(Option<WorkerName>),
    /// The report of the worker is too large.
    TooLarge(WorkerName, u64),
    /// The worker breaks the protocol.
    Broken(Option<WorkerName>, String),
    /// The messages cannot be sent.
    Unsent(String),
}

/// Worker that accepted the call. It is told to stop if the caller leaves first.
struct AcceptedCall<'c> {
    client: &'c Client,
    worker: WorkerName,
    call: String,
    is_running: bool,
    report: Option<Assembly>,
}

impl Drop for AcceptedCall<'_> {
    fn drop(&mut self) {
        let (true, Ok(tokio)) = (self.is_running, Handle::try_current()) else { return };
        let (client, subject) = (self.client.clone(), control(&self.worker, &self.call));
        let cancel = encode(&CallerMessage::Cancel { call: std::mem::take(&mut self.call) }, b"");
        tokio.spawn(async move {
            // Without this message, the worker finds that its next sign of life has no receiver.
            if client.publish(subject, cancel.into()).await.is_ok() {
                let _ = client.flush().await;
            }
        });
    }
}

/// Makes one attempt.
pub(crate) async fn attempt(client: &Client, subject: &str, silence: Duration, call: &WorkerCall<'_>) -> AttemptEnd {
    let (id, inbox) = (new_call(), client.new_inbox());
    let unsent = |error: &dyn std::error::Error| AttemptEnd::Unsent(error.to_string());
    let mut messages = match client.subscribe(inbox.clone()).await {
        Ok(messages) => messages,
        Err(error) => return unsent(&error),
    };
    let begun = Instant::now();
    let offer = Offer {
        version: VERSION,
        call: id.clone(),
        tool: call.tool.to_owned(),
        digest: call.digest.to_owned(),
        deadline_ms: milliseconds(call.until.saturating_duration_since(begun)),
        silence_ms: milliseconds(silence),
        trace: call.trace.map(|trace| format!("00-{:032x}-{:016x}-00", trace.trace_id(), trace.parent_id())),
    };
    if let Err(error) = client.publish_with_reply(subject.to_owned(), inbox, encode(&offer, b"").into()).await {
        return unsent(&error);
    }
    let (mut accepted, mut reports): (Option<AcceptedCall<'_>>, u64) = (None, 0);
    loop {
        let worker = || accepted.as_ref().map(|accepted| accepted.worker.clone());
        let patience = Instant::now() + silence;
        let message = match timeout_at(patience.min(call.until).into(), messages.next()).await {
            Ok(Some(message)) => message,
            Err(_) if call.until <= patience => return AttemptEnd::Late(worker()),
            Ok(None) | Err(_) => return AttemptEnd::Lost(worker()),
        };
        reports += 1;
        let allowed = MAX_REPORTS + begun.elapsed().as_secs() * MAX_REPORTS_A_SECOND;
        let has_report = accepted.as_ref().is_some_and(|accepted| accepted.report.is_some());
        if reports > allowed && !has_report {
            return AttemptEnd::Broken(worker(), format!("it sent more than {allowed} reports"));
        }
        match next(client, &id, call, &mut accepted, &message).await {
            None => {}
            Some(end) => {
                if let (Some(accepted), AttemptEnd::Answer(_)) = (&mut accepted, &end) {
                    accepted.is_running = false;
                }
                return end;
            }
        }
    }
}

/// Takes one message. Returns the end of the attempt, if the message is its end.
async fn next<'c>(
    client: &'c Client,
    id: &str,
    call: &WorkerCall<'_>,
    accepted: &mut Option<AcceptedCall<'c>>,
    message: &Message,
) -> Option<AttemptEnd> {
    if accepted.is_none() && message.status == Some(StatusCode::NO_RESPONDERS) {
        return Some(AttemptEnd::NoWorker);
    }
    let known = accepted.as_ref().map(|accepted| accepted.worker.clone());
    let broken = |why: String| Some(AttemptEnd::Broken(known.clone(), why));
    let (head, part) = match decode::<WorkerMessage>(&message.payload) {
        Ok(decoded) => decoded,
        Err(why) => return broken(why),
    };
    if head.call() != id {
        return broken("it answers another call".to_owned());
    }
    let named = |worker: &str| worker.parse::<WorkerName>();
    match (accepted.as_mut(), head) {
        (None, WorkerMessage::Busy { worker, .. }) => match named(&worker) {
            Ok(worker) => Some(AttemptEnd::Busy(worker)),
            Err(error) => broken(format!("its name is wrong: {error}")),
        },
        (None, WorkerMessage::Refused { worker, reason, .. }) => match named(&worker) {
            Ok(worker) => {
                call.accepted_by(worker.as_str());
                Some(AttemptEnd::Refused(worker, reason.chars().take(MAX_REASON).collect()))
            }
            Err(error) => broken(format!("its name is wrong: {error}")),
        },
        (None, WorkerMessage::Accepted { worker, version, .. }) => match (named(&worker), version) {
            (Ok(worker), VERSION) => {
                call.accepted_by(worker.as_str());
                let begun = AcceptedCall { client, worker, call: id.to_owned(), is_running: true, report: None };
                let begun = accepted.insert(begun);
                start(client, begun, call.arguments).await.err().map(AttemptEnd::Unsent)
            }
            (Err(error), _) => broken(format!("its name is wrong: {error}")),
            (Ok(_), version) => broken(format!("it has version {version} of the messages")),
        },
        (Some(AcceptedCall { report: None, .. }), WorkerMessage::Alive { .. }) => None,
        (Some(AcceptedCall { report: None, .. }), WorkerMessage::Progress { done, total, .. }) => {
            call.progress(done, total);
            None
        }
        (Some(begun @ AcceptedCall { report: None, .. }), WorkerMessage::Answer { bytes, .. }) => {
            let max = max_report(call.max_answer);
            if bytes > max as u64 {
                return Some(AttemptEnd::TooLarge(begun.worker.clone(), bytes));
            }
            match Assembly::begin(bytes, max, part) {
                Ok(report) => read(begun.report.insert(report), known.as_ref()),
                Err(why) => broken(why),
            }
        }
        (Some(AcceptedCall { report: Some(report), .. }), WorkerMessage::Part { index, .. }) => {
            match report.add(index, part) {
                Ok(()) => read(report, known.as_ref()),
                Err(why) => broken(why),
            }
        }
        _ => broken("it sent a message out of order".to_owned()),
    }
}

/// Reads a report once it is whole.
fn read(report: &mut Assembly, worker: Option<&WorkerName>) -> Option<AttemptEnd> {
    let whole = report.whole()?;
    Some(match report::read(&whole) {
        Ok(answer) => AttemptEnd::Answer(answer),
        Err(why) => AttemptEnd::Broken(worker.cloned(), why),
    })
}

/// Sends the arguments to the worker, which starts the call.
async fn start(client: &Client, accepted: &AcceptedCall<'_>, arguments: &str) -> Result<(), String> {
    let AcceptedCall { worker, call, .. } = accepted;
    let subject = control(worker, call);
    for (index, part) in (0u32..).zip(parts(arguments.as_bytes())) {
        let head = match index {
            0 => CallerMessage::Start { call: call.clone(), bytes: arguments.len() as u64 },
            _ => CallerMessage::Part { call: call.clone(), index },
        };
        client.publish(subject.clone(), encode(&head, part).into()).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
