//! How an answer arrives: as one JSON text or as a stream of events, told apart by its first byte, since servers ignore
//! the wish for a stream and mislabel what they send. Sizes and times are bounded here.

use std::pin::pin;
use std::time::Duration;

use eventsource_stream::{EventStreamError, Eventsource};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Response;
use serde_json::{Deserializer, Value};
use tokio::time::Instant;

use super::answer::{Answer, Unusable, message_of};
use super::event::Event;
use super::report::Report;
use super::retry;
use super::server::Fault;
use super::turn::Turn;
use crate::render::{one_line, shortened};

/// The largest answer that is read, in bytes, whole or as a stream.
pub(crate) const LARGEST_ANSWER: usize = 16 << 20;
/// The most of a refusal that is read, in bytes.
const LARGEST_REFUSAL: usize = 64 << 10;
/// The most of an unreadable answer that is shown, in characters.
const SHOWN: usize = 200;

/// What is said of a server that keeps silent.
pub(crate) fn nothing_within(timeout: Duration) -> String {
    format!("no answer within {timeout:?}")
}

/// Reads an answer. `timeout` is for all of it, or between two parts where a stream was wished for.
pub(crate) async fn read(
    response: Response,
    timeout: Duration,
    streamed: bool,
    step: u32,
    report: &mut Report,
) -> Result<Turn, Fault> {
    let mut bytes = pin!(bounded(response, timeout, streamed));
    let mut head = Vec::new();
    let first = loop {
        if let Some(first) = first_of(&head) {
            break first;
        }
        match bytes.try_next().await? {
            Some(more) => head.extend_from_slice(&more),
            None => return Err(Fault::passing("the server's answer is empty")),
        }
    };
    head.drain(..head.len() - first.len());
    if head[0] == b'{' {
        while let Some(more) = bytes.try_next().await? {
            head.extend_from_slice(&more);
        }
        whole(&head, streamed, step, report)
    } else {
        // An event ends with an empty line, which servers leave out after the last.
        let like_events = b":deir".contains(&head[0]);
        let shown = one_line(&shortened(&String::from_utf8_lossy(&head), SHOWN));
        let ended = stream::iter([Ok(head)]).chain(bytes).chain(stream::iter([Ok(b"\n\n".to_vec())]));
        match events(ended, step, streamed, report).await? {
            Some(turn) => Ok(turn),
            None if like_events => Err(fault(Unusable::Cut, report)),
            None => Err(Fault::lasting(format!("the answer is neither JSON nor a stream of events: {shown}"))),
        }
    }
}

/// The start of a refusal, as text.
pub(crate) async fn read_refusal(response: Response, timeout: Duration) -> String {
    let mut bytes = pin!(bounded(response, timeout, false));
    let mut text = Vec::new();
    while let Ok(Some(more)) = bytes.try_next().await {
        text.extend_from_slice(&more);
        if text.len() >= LARGEST_REFUSAL {
            text.truncate(LARGEST_REFUSAL);
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A response's bytes, no more than are read and no later than are waited for.
fn bounded(response: Response, timeout: Duration, streamed: bool) -> impl Stream<Item = Result<Vec<u8>, Fault>> {
    let deadline = Instant::now() + timeout;
    stream::try_unfold((response, 0), move |(mut response, read)| async move {
        let until = if streamed { Instant::now() + timeout } else { deadline };
        let chunk = tokio::time::timeout_at(until, response.chunk())
            .await
            .map_err(|_| Fault::passing(nothing_within(timeout)))?
            .map_err(Fault::transport)?;
        let Some(chunk) = chunk else { return Ok(None) };
        let read = read + chunk.len();
        if read > LARGEST_ANSWER {
            return Err(Fault::lasting(format!("the answer is larger than {LARGEST_ANSWER} bytes")));
        }
        Ok(Some((chunk.to_vec(), (response, read))))
    })
}

/// What follows white space and a byte order mark, if anything does yet.
fn first_of(head: &[u8]) -> Option<&[u8]> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let perhaps_mark = head.len() < 3 && b"\xef\xbb\xbf".starts_with(head);
    (!perhaps_mark).then_some(head)
}

fn whole(text: &[u8], streamed: bool, step: u32, report: &mut Report) -> Result<Turn, Fault> {
    report.debug(|| String::from_utf8_lossy(text).into_owned())?;
    let body: Value =
        serde_json::from_slice(text).map_err(|error| Fault::passing(format!("the answer is not JSON: {error}")))?;
    let mut answer = Answer::default();
    let text = answer.add(&body).map_err(|unusable| fault(unusable, report))?;
    if streamed && !text.is_empty() {
        report.emit(&Event::Text { step, delta: text })?;
    }
    answer.whole().map_err(|unusable| fault(unusable, report))
}

/// The answer of a stream of events; `None` where there was no event at all.
async fn events<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, Fault>>,
    step: u32,
    streamed: bool,
    report: &mut Report,
) -> Result<Option<Turn>, Fault> {
    let mut events = pin!(bytes.eventsource());
    let mut answer = Answer::default();
    let (mut begun, mut done) = (false, false);
    while let (false, Some(event)) = (done, events.next().await) {
        let event = match event {
            Ok(event) => event,
            // What was announced as complete is complete, however the connection ends.
            Err(_) if answer.is_finished() => break,
            Err(EventStreamError::Transport(fault)) => return Err(fault),
            Err(_) => return Err(Fault::passing("the stream is not UTF-8 text")),
        };
        begun = true;
        report.debug(|| event.data.clone())?;
        if event.event == "error" {
            let said = serde_json::from_str::<Value>(&event.data).map_or(event.data, |body| message_of(&body));
            return Err(fault(Unusable::Error { code: None, message: said }, report));
        }
        done = add_event(&mut answer, &event.data, step, streamed, report)?;
    }
    if !begun {
        return Ok(None);
    }
    answer.streamed(done).map(Some).map_err(|unusable| fault(unusable, report))
}

/// Adds the parts in an event, more than one where a server leaves out the empty line between them, and says whether
/// the end was announced.
fn add_event(answer: &mut Answer, data: &str, step: u32, streamed: bool, report: &mut Report) -> Result<bool, Fault> {
    let mut parts = Deserializer::from_str(data).into_iter::<Value>();
    loop {
        let rest = data[parts.byte_offset()..].trim();
        if rest.is_empty() || rest == "[DONE]" {
            return Ok(!rest.is_empty());
        }
        let Some(Ok(part)) = parts.next() else {
            return Err(fault(Unusable::Cut, report));
        };
        let text = answer.add(&part).map_err(|unusable| fault(unusable, report))?;
        if streamed && !text.is_empty() {
            report.emit(&Event::Text { step, delta: text })?;
        }
    }
}

fn fault(unusable: Unusable, report: &Report) -> Fault {
    match unusable {
        Unusable::Cut => Fault::passing("the stream was cut before the answer was complete"),
        Unusable::Empty => Fault::lasting("the server's answer holds no message"),
        Unusable::Error { code, message } => {
            let reason = format!("the server reports: {}", one_line(&shortened(&report.masked(&message), SHOWN)));
            if code.is_some_and(retry::is_passing) { Fault::passing(reason) } else { Fault::lasting(reason) }
        }
    }
}
