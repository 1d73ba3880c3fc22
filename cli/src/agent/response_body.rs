//! How an answer arrives: as one JSON text or as a stream of events, told apart by its first byte, since servers ignore
//! the wish for a stream and mislabel what they send. Sizes and times are bounded here.

use std::pin::pin;
use std::time::Duration;

use eventsource_stream::{Event as PartEvent, EventStreamError, Eventsource};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Response;
use serde_json::{Deserializer, Value};
use tokio::time::Instant;

use super::answer::{Arriving, MAX_CALLS, Unusable};
use super::api::Api;
use super::event::Event;
use super::fault::Fault;
use super::lines::lines;
use super::report::Report;
use super::retry;
use super::turn::Turn;
use crate::render::{one_line, shortened};

/// The largest answer that is read, in bytes, whole or as a stream.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The longest that a streamed answer is listened to, though it never falls silent for long. Where one part of it may
/// take longer, all of it may.
const MAX_STREAM: Duration = Duration::from_secs(30 * 60);
/// What some servers put before their text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// What an event without a name is called.
const UNNAMED: &str = "message";
/// The most of a refusal that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// The most of an unreadable answer that is shown, in characters.
const SHOWN: usize = 200;

/// Reads an answer. `timeout` is for all of it, or between two parts where a stream was wished for: all of that is bounded
/// by [`MAX_STREAM`].
pub(crate) async fn read(
    response: Response,
    timeout: Duration,
    (api, streamed): (Api, bool),
    step: u32,
    report: &mut Report,
) -> Result<Turn, Fault> {
    let answer = api.answer();
    let mut bytes = pin!(bounded(response, timeout, streamed));
    let mut head = Vec::new();
    // Not even the mark before the text, or only a part of it.
    while head.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&head) {
        match bytes.try_next().await? {
            Some(more) => head.extend_from_slice(&more),
            None => return Err(Fault::passing("the server's answer is empty")),
        }
        head.drain(..head.len() - begun(&head).len());
    }
    if head[0] == b'{' {
        while let Some(more) = bytes.try_next().await? {
            head.extend_from_slice(&more);
        }
        whole(answer, &head, streamed, step, report)
    } else {
        // An event ends with an empty line, which servers leave out after the last.
        let like_events = b":deir".contains(&head[0]);
        let shown = one_line(&shortened(&report.masked(&String::from_utf8_lossy(&head)), SHOWN));
        let ended = stream::iter([Ok(head)]).chain(bytes).chain(stream::iter([Ok(b"\n\n".to_vec())]));
        match events(answer, lines(ended), step, streamed, report).await? {
            Some(turn) => Ok(turn),
            None if like_events => Err(fault(Unusable::Cut, report)),
            None => Err(Fault::lasting(format!("the answer is neither JSON nor an event stream: {shown}"))),
        }
    }
}

/// The start of a refusal, as text.
pub(crate) async fn read_refusal(response: Response, timeout: Duration) -> String {
    let mut bytes = pin!(bounded(response, timeout, false));
    let mut text = Vec::new();
    while let Ok(Some(more)) = bytes.try_next().await {
        text.extend_from_slice(&more);
        if text.len() >= MAX_REFUSAL_BYTES {
            text.truncate(MAX_REFUSAL_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A response's bytes, no more than are read and no later than are waited for.
fn bounded(response: Response, timeout: Duration, streamed: bool) -> impl Stream<Item = Result<Vec<u8>, Fault>> {
    let whole = if streamed { MAX_STREAM.max(timeout) } else { timeout };
    let deadline = Instant::now() + whole;
    stream::try_unfold((response, 0), move |(mut response, read)| async move {
        let chunk = match tokio::time::timeout_at(deadline.min(Instant::now() + timeout), response.chunk()).await {
            // What is always ready never waits, and so is never late.
            Ok(chunk) if Instant::now() < deadline => chunk.map_err(Fault::transport)?,
            Err(_) if Instant::now() < deadline => return Err(Fault::late(timeout)),
            _ => return Err(unended(whole, streamed)),
        };
        let Some(chunk) = chunk else { return Ok(None) };
        let read = read + chunk.len();
        if read > MAX_ANSWER_BYTES {
            return Err(Fault::lasting(format!("the answer is larger than {MAX_ANSWER_BYTES} bytes")));
        }
        Ok(Some((chunk.to_vec(), (response, read))))
    })
}

/// What is said of an answer that does not end. A stream that has gone on for ever would do so again.
fn unended(whole: Duration, streamed: bool) -> Fault {
    match streamed {
        true => Fault::lasting(format!("the answer did not end within {whole:?}")),
        false => Fault::late(whole),
    }
}

/// What follows white space and a byte order mark.
fn begun(head: &[u8]) -> &[u8] {
    let head = head.trim_ascii_start();
    head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start()
}

fn whole(
    mut answer: Box<dyn Arriving>,
    text: &[u8],
    streamed: bool,
    step: u32,
    report: &mut Report,
) -> Result<Turn, Fault> {
    report.debug(|| String::from_utf8_lossy(text).into_owned())?;
    let body: Value =
        serde_json::from_slice(text).map_err(|error| Fault::passing(format!("the answer is not JSON: {error}")))?;
    let text = answer.add(&body).map_err(|unusable| fault(unusable, report))?;
    if streamed && !text.is_empty() {
        report.emit(&Event::Text { step, delta: text })?;
    }
    answer.whole().map_err(|unusable| fault(unusable, report))
}

/// The answer of a stream of events; `None` where there was no event at all.
async fn events(
    mut answer: Box<dyn Arriving>,
    lines: impl Stream<Item = Result<String, Fault>>,
    step: u32,
    streamed: bool,
    report: &mut Report,
) -> Result<Option<Turn>, Fault> {
    let mut events = pin!(lines.eventsource());
    let (mut begun, mut done) = (false, false);
    while let (false, Some(event)) = (done, events.next().await) {
        let event = match event {
            Ok(event) => event,
            // What was announced as complete is complete, however the connection ends.
            Err(_) if answer.is_finished() => break,
            Err(EventStreamError::Transport(fault)) => return Err(fault),
            Err(_) => return Err(Fault::passing("the stream is not an event stream")),
        };
        begun = true;
        report.debug(|| event.data.clone())?;
        if event.event == "error" {
            let said = serde_json::from_str(&event.data).unwrap_or(Value::String(event.data));
            return Err(fault(Unusable::error(&said), report));
        }
        done = add_event(answer.as_mut(), &event, step, streamed, report)?;
    }
    if !begun {
        return Ok(None);
    }
    answer.streamed(done).map(Some).map_err(|unusable| fault(unusable, report))
}

/// Adds the parts in an event, more than one where a server leaves out the empty line between them, and says whether
/// the end was announced. A part that does not say what it is is what its event is called.
fn add_event(
    answer: &mut dyn Arriving,
    PartEvent { event: kind, data, .. }: &PartEvent,
    step: u32,
    streamed: bool,
    report: &mut Report,
) -> Result<bool, Fault> {
    let mut parts = Deserializer::from_str(data).into_iter::<Value>();
    loop {
        let rest = data[parts.byte_offset()..].trim_start();
        let done = rest.starts_with("[DONE]");
        if done || rest.is_empty() {
            return Ok(done);
        }
        let Some(Ok(mut part)) = parts.next() else {
            return Err(fault(Unusable::Cut, report));
        };
        if let (Some(fields), true) = (part.as_object_mut(), kind != UNNAMED) {
            fields.entry("type").or_insert_with(|| kind.as_str().into());
        }
        let text = answer.add(&part).map_err(|unusable| fault(unusable, report))?;
        if streamed && !text.is_empty() {
            report.emit(&Event::Text { step, delta: text })?;
        }
        if answer.is_over() {
            return Ok(true);
        }
    }
}

fn fault(unusable: Unusable, report: &Report) -> Fault {
    match unusable {
        Unusable::Cut => Fault::passing("the stream was cut before the answer was complete"),
        Unusable::CutCall => {
            Fault::lasting("the server's token limit cut a call short: no call of this answer is executed")
        }
        Unusable::Empty => Fault::lasting("the server's answer contains no message"),
        Unusable::Flood => Fault::lasting(format!("the answer contains more than {MAX_CALLS} calls or other items")),
        Unusable::Error { code, message } => {
            let reason = format!("the server reports: {}", one_line(&shortened(&report.masked(&message), SHOWN)));
            if code.is_some_and(retry::is_passing) { Fault::passing(reason) } else { Fault::lasting(reason) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_an_answer_is_no_part_of_it() {
        for (head, wanted) in [
            ("", ""),
            (" \r\n", ""),
            ("{", "{"),
            ("\n {\"a\": 1} ", "{\"a\": 1} "),
            ("\u{feff} :x", ":x"),
            (" \u{feff}", ""),
        ] {
            assert_eq!(begun(head.as_bytes()), wanted.as_bytes(), "{head:?}");
        }
        assert_eq!(begun(b"\xef\xbb"), b"\xef\xbb", "half a mark may become a whole one");
    }

    #[test]
    fn a_stream_that_never_ends_is_given_up_and_never_asked_for_again() {
        assert!(matches!(unended(MAX_STREAM, true), Fault::Lasting { reason, .. } if reason.ends_with("within 1800s")));
        assert!(matches!(unended(Duration::from_secs(1), false), Fault::Passing { .. }));
    }
}
