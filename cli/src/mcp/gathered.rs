//! Answers over HTTP whose first parts wait for the next ones a short time: the client of a short call is woken once, by the whole
//! answer, and not also by the beginning of the stream.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};

/// Maximum wait for the next parts.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(2);
/// Maximum number of parts that wait.
const MAX_PARTS: usize = 8;

/// Waits for the first parts of an answer, at most for this time.
pub(super) async fn gathered(
    response: Response<BoxBody<Bytes, Infallible>>,
    wait: Duration,
) -> Response<BoxBody<Bytes, Infallible>> {
    let (head, mut body) = response.into_parts();
    let mut first = Vec::new();
    let gather = async {
        while first.len() < MAX_PARTS {
            match body.frame().await {
                Some(frame) => first.push(frame),
                None => return true,
            }
        }
        false
    };
    let is_whole = tokio::time::timeout(wait, gather).await.unwrap_or(false);
    // A body that has ended is not asked again.
    let rest = stream::iter((!is_whole).then(|| BodyStream::new(body))).flatten();
    Response::from_parts(head, BodyExt::boxed(StreamBody::new(stream::iter(first).chain(rest))))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::channel::mpsc;
    use futures::{FutureExt, poll};
    use hyper::body::Frame;

    use super::*;

    /// Answer with parts that are sent later.
    fn answer() -> (mpsc::UnboundedSender<&'static str>, Response<BoxBody<Bytes, Infallible>>) {
        let (sender, parts) = mpsc::unbounded();
        let parts = parts.map(|part: &str| Ok(Frame::data(Bytes::from(part))));
        (sender, Response::new(BodyExt::boxed(StreamBody::new(parts))))
    }

    /// Takes the parts that can be sent now.
    fn ready(body: &mut BoxBody<Bytes, Infallible>) -> Vec<Bytes> {
        let frame = || Some(body.frame().now_or_never()??.unwrap().into_data().unwrap());
        std::iter::from_fn(frame).collect()
    }

    #[tokio::test]
    async fn a_short_answer_is_sent_whole() {
        let (sender, response) = answer();
        let mut gathering = pin!(gathered(response, Duration::from_secs(60)));
        sender.unbounded_send("a").unwrap();
        assert!(poll!(&mut gathering).is_pending());
        sender.unbounded_send("b").unwrap();
        assert!(poll!(&mut gathering).is_pending());
        drop(sender);
        let mut body = gathering.await.into_body();
        assert_eq!(ready(&mut body), ["a", "b"]);
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_long_answer_begins_in_time_and_loses_nothing() {
        let (sender, response) = answer();
        sender.unbounded_send("a").unwrap();
        let mut body = gathered(response, Duration::ZERO).await.into_body();
        assert_eq!(ready(&mut body), ["a"], "while its call runs");
        for part in ["b", "c"] {
            sender.unbounded_send(part).unwrap();
            assert_eq!(ready(&mut body), [part]);
        }
        let (sender, response) = answer();
        (0..=MAX_PARTS).for_each(|_| sender.unbounded_send("x").unwrap());
        let gathered = gathered(response, Duration::from_secs(60)).now_or_never();
        let mut body = gathered.expect("the parts that wait are bounded").into_body();
        assert_eq!(ready(&mut body).len(), MAX_PARTS + 1);
        drop(sender);
        assert!(body.frame().await.is_none());
    }
}
