//! Reads response bodies: JSON or an event stream, distinguished by the first byte, since servers ignore the `stream`
//! option and mislabel content types. Sizes and times are bounded here.

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Response;
use serde_json::{Deserializer, Value};
use tokio::time::Instant;
use toolcrib_base::event_stream::{self, SentEvent, UNNAMED};
use toolcrib_base::render::{one_line, shortened};
use toolcrib_base::retry;

use super::MAX_MESSAGE;
use super::answer::{AnswerBuilder, AnswerError, MAX_CALLS};
use super::api::Api;
use super::event::Event;
use super::report::Report;
use super::request_error::RequestError;
use super::turn::Turn;

/// Maximum size of an answer, in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Maximum duration of a stream. A longer limit between parts extends it.
const MAX_STREAM: Duration = Duration::from_secs(30 * 60);
/// Byte order mark that some servers send.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Maximum bytes read of an error response.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Reads an answer. `timeout` limits the whole answer or, for a stream, the time between two parts; [`MAX_STREAM`] limits
/// the whole stream.
pub(crate) async fn read(
    response: Response,
    timeout: Duration,
    (api, streamed): (Api, bool),
    step: u32,
    report: &mut Report,
) -> Result<Turn, RequestError> {
    let answer = api.answer();
    let mut bytes = pin!(bounded(response, timeout, streamed));
    let mut head = Vec::new();
    // Only white space or part of a byte order mark so far.
    while head.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&head) {
        match bytes.try_next().await? {
            Some(more) => head.extend_from_slice(&more),
            None => return Err(RequestError::transient("the server's answer is empty")),
        }
        head.drain(..head.len() - begun(&head).len());
    }
    if head[0] == b'{' {
        while let Some(more) = bytes.try_next().await? {
            head.extend_from_slice(&more);
        }
        whole(answer, &head, streamed, step, report)
    } else {
        // An event ends with an empty line, which servers omit after the last.
        let like_events = b":deir".contains(&head[0]);
        let shown = one_line(&shortened(&report.masked(&String::from_utf8_lossy(&head)), MAX_MESSAGE));
        let ended = stream::iter([Ok(head)]).chain(bytes).chain(stream::iter([Ok(b"\n\n".to_vec())]));
        match events(answer, ended, step, streamed, report).await? {
            Some(turn) => Ok(turn),
            None if like_events => Err(fault(AnswerError::Truncated, report)),
            None => Err(RequestError::foreign(format!("the answer is neither JSON nor an event stream: {shown}"))),
        }
    }
}

/// Reads the start of an error response.
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

/// Streams the bytes of a response within the size and time limits.
fn bounded(response: Response, timeout: Duration, streamed: bool) -> impl Stream<Item = Result<Vec<u8>, RequestError>> {
    let whole = if streamed { MAX_STREAM.max(timeout) } else { timeout };
    let deadline = Instant::now() + whole;
    stream::try_unfold((response, 0), move |(mut response, read)| async move {
        let chunk = match tokio::time::timeout_at(deadline.min(Instant::now() + timeout), response.chunk()).await {
            // A stream that is always ready never triggers the timeout, so the deadline is checked here.
            Ok(chunk) if Instant::now() < deadline => chunk.map_err(RequestError::transport)?,
            Err(_) if Instant::now() < deadline && read > 0 => return Err(RequestError::stalled(timeout)),
            Err(_) if Instant::now() < deadline => return Err(RequestError::timed_out(timeout)),
            _ if streamed => return Err(RequestError::endless(whole)),
            _ => return Err(RequestError::timed_out(whole)),
        };
        let Some(chunk) = chunk else { return Ok(None) };
        let read = read + chunk.len();
        if read > MAX_ANSWER_BYTES {
            return Err(RequestError::permanent(format!("the answer is larger than {MAX_ANSWER_BYTES} bytes")));
        }
        Ok(Some((chunk.to_vec(), (response, read))))
    })
}

/// Skips white space and a byte order mark.
fn begun(head: &[u8]) -> &[u8] {
    let head = head.trim_ascii_start();
    head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start()
}

fn whole(
    mut answer: Box<dyn AnswerBuilder>,
    text: &[u8],
    streamed: bool,
    step: u32,
    report: &mut Report,
) -> Result<Turn, RequestError> {
    report.debug(|| String::from_utf8_lossy(text).into_owned())?;
    let body: Value = serde_json::from_slice(text)
        .map_err(|error| RequestError::transient(format!("the answer is not JSON: {error}")))?;
    let text = answer.add(&body).map_err(|error| fault(error, report))?;
    if streamed && !text.is_empty() {
        report.emit(&Event::Text { step, delta: text })?;
    }
    answer.whole().map_err(|error| fault(error, report))
}

/// Reads the answer from an event stream; `None` if there was no event.
async fn events(
    mut answer: Box<dyn AnswerBuilder>,
    bytes: impl Stream<Item = Result<Vec<u8>, RequestError>>,
    step: u32,
    streamed: bool,
    report: &mut Report,
) -> Result<Option<Turn>, RequestError> {
    let mut events = pin!(event_stream::events(bytes));
    let (mut begun, mut done) = (false, false);
    while let (false, Some(event)) = (done, events.next().await) {
        let event = match event {
            Ok(event) => event,
            // An answer announced as complete is complete, however the connection ends.
            Err(_) if answer.is_finished() => break,
            Err(error) => {
                let fault = error.or(RequestError::transient);
                return Err(if report.has_text() { fault.after_text() } else { fault });
            }
        };
        begun = true;
        report.debug(|| event.data.clone())?;
        if event.name == "error" {
            let error = serde_json::from_str(&event.data).unwrap_or(Value::String(event.data));
            return Err(fault(AnswerError::error(&error), report));
        }
        done = add_event(answer.as_mut(), &event, step, streamed, report)?;
    }
    if !begun {
        return Ok(None);
    }
    answer.streamed(done).map(Some).map_err(|error| fault(error, report))
}

/// Adds the parts of an event and returns `true` at the announced end. An event has several parts if a server omits the
/// empty lines. A part without a type gets the name of its event.
fn add_event(
    answer: &mut dyn AnswerBuilder,
    SentEvent { name, data }: &SentEvent,
    step: u32,
    streamed: bool,
    report: &mut Report,
) -> Result<bool, RequestError> {
    let mut parts = Deserializer::from_str(data).into_iter::<Value>();
    loop {
        let rest = data[parts.byte_offset()..].trim_start();
        let done = rest.starts_with("[DONE]");
        if done || rest.is_empty() {
            return Ok(done);
        }
        let Some(Ok(mut part)) = parts.next() else {
            return Err(fault(AnswerError::Truncated, report));
        };
        if let (Some(fields), true) = (part.as_object_mut(), name != UNNAMED) {
            fields.entry("type").or_insert_with(|| name.as_str().into());
        }
        let text = answer.add(&part).map_err(|error| fault(error, report))?;
        if streamed && !text.is_empty() {
            report.emit(&Event::Text { step, delta: text })?;
        }
        if answer.is_over() {
            return Ok(true);
        }
    }
}

fn fault(error: AnswerError, report: &Report) -> RequestError {
    match error {
        AnswerError::Truncated => RequestError::transient("the stream was cut before the answer was complete"),
        AnswerError::TruncatedCall => {
            RequestError::permanent("the server's token limit cut a call short: no call of this answer is executed")
        }
        AnswerError::Empty => RequestError::foreign("the server's answer contains no message"),
        AnswerError::TooManyItems => {
            RequestError::permanent(format!("the answer contains more than {MAX_CALLS} calls or other items"))
        }
        AnswerError::Error { code, message } => {
            let reason = format!("the server reports: {}", one_line(&shortened(&report.masked(&message), MAX_MESSAGE)));
            if code.is_some_and(retry::is_transient) {
                RequestError::transient(reason)
            } else {
                RequestError::permanent(reason)
            }
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
        let RequestError::Permanent { reason, .. } = RequestError::endless(MAX_STREAM) else { panic!("it is retried") };
        assert!(reason.contains("within 1800s, the limit of a stream or a longer `model.http_timeout`"), "{reason}");
        let limit = Duration::from_secs(1);
        assert!(matches!(RequestError::timed_out(limit).after_text(), RequestError::Permanent { .. }));
        assert!(matches!(RequestError::transient("cut").after_text(), RequestError::Transient { .. }));
    }
}
