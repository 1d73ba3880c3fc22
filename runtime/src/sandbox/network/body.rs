//! Bodies, counted frame by frame in both directions: what is over a cap ends the exchange, and nothing is collected.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::tool::Limits;

use super::connect::overflowed;
use super::fault::{Fault, Phase};
use super::ledger::Entry;
use super::secret::Sieve;

/// The body of a request on its way out.
pub(super) struct Sent<B> {
    body: Pin<Box<B>>,
    entry: Arc<Entry>,
    sent: u64,
    most: usize,
    /// The length that the head announced.
    announced: Option<u64>,
}

impl<B> Sent<B> {
    pub(super) fn new(body: B, entry: Arc<Entry>, limits: &Limits, announced: Option<u64>) -> Self {
        Self { body: Box::pin(body), entry, sent: 0, most: limits.request_body, announced }
    }
}

impl<B: Body<Data = Bytes>> Body for Sent<B>
where
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.body.as_mut().poll_frame(cx);
        let Poll::Ready(Some(Ok(frame))) = polled else {
            return polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)));
        };
        if let Some(bytes) = frame.data_ref() {
            self.entry.sent(bytes.len());
            self.sent += bytes.len() as u64;
            let fault = if self.sent > self.most as u64 {
                Some(Fault::RequestTooLarge(self.most))
            } else if self.announced.is_some_and(|announced| self.sent > announced) {
                Some(Fault::Rejected("its body is longer than it announced".to_owned()))
            } else {
                None
            };
            if let Some(fault) = fault {
                self.entry.failed(&fault);
                return Poll::Ready(Some(Err(fault.into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response on its way in. Its request is under way until this is read to its end or dropped.
#[derive(Debug)]
pub(crate) struct Received {
    /// Absent when there is nothing more to come.
    open: Option<(Incoming, Arc<Entry>)>,
    most: usize,
    between: Duration,
    silence: Pin<Box<Sleep>>,
    /// What keeps secrets from the guest, in a call that was given any.
    sieve: Option<Sieve>,
    /// What is handed on after the rest that the sieve held back.
    trailers: Option<HeaderMap>,
}

impl Received {
    /// `between` is how long the far side may be silent.
    pub(super) fn new(
        body: Incoming,
        entry: Arc<Entry>,
        limits: &Limits,
        between: Duration,
        sieve: Option<Sieve>,
    ) -> Self {
        let silence = Box::pin(tokio::time::sleep(between));
        Self { open: Some((body, entry)), most: limits.received, between, silence, sieve, trailers: None }
    }

    fn end(&mut self, fault: Fault) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if let Some((_, entry)) = self.open.take() {
            entry.failed(&fault);
        }
        self.sieve = None;
        Poll::Ready(Some(Err(fault)))
    }

    /// The next frame as it came, counted.
    fn poll_counted(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let most = self.most;
        let Some((body, entry)) = &mut self.open else { return Poll::Ready(None) };
        let frame = match Pin::new(body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                if overflowed(&error) {
                    return self.end(Fault::ResponseTooLarge(most));
                }
                let broke_off = error.is_incomplete_message() || error.is_closed();
                let why = if broke_off {
                    "the server closed the connection early"
                } else {
                    "the server sent a malformed body"
                };
                return self.end(Fault::Protocol(why));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                return match self.silence.as_mut().poll(cx) {
                    Poll::Ready(()) => self.end(Fault::Slow(Phase::Body, "the server stopped sending")),
                    Poll::Pending => Poll::Pending,
                };
            }
        };
        if let Some(bytes) = frame.data_ref()
            && let Err(fault) = entry.received(bytes.len(), most)
        {
            return self.end(fault);
        }
        let next = Instant::now() + self.between;
        self.silence.as_mut().reset(next);
        Poll::Ready(Some(Ok(frame)))
    }

    /// The next frame that holds nothing of a secret.
    fn poll_sieved(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        loop {
            let frame = match ready!(self.poll_counted(cx)) {
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                Some(Ok(frame)) => Some(frame),
                None => None,
            };
            let Some(sieve) = &mut self.sieve else { return Poll::Ready(frame.map(Ok)) };
            let passed = match frame.map(Frame::into_data) {
                Some(Ok(data)) => sieve.push(&data),
                // Trailers, and nothing behind them.
                Some(Err(frame)) => {
                    self.trailers = frame.into_trailers().ok();
                    self.trailers.iter().try_for_each(|trailers| sieve.trailers(trailers)).and_then(|()| sieve.end())
                }
                None => {
                    let rest = sieve.end();
                    if rest.as_ref().is_ok_and(Bytes::is_empty) {
                        return Poll::Ready(None);
                    }
                    rest
                }
            };
            match passed {
                Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Ok(_) if self.trailers.is_some() => {
                    return Poll::Ready(self.trailers.take().map(Frame::trailers).map(Ok));
                }
                Ok(_) => {}
                Err(fault) => {
                    self.trailers = None;
                    return self.end(fault);
                }
            }
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let polled = if self.sieve.is_some() { self.poll_sieved(cx) } else { self.poll_counted(cx) };
        if let Poll::Ready(None) = polled {
            self.open = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.open.as_ref().is_none_or(|(body, _)| self.sieve.is_none() && body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let plain = self.open.as_ref().filter(|_| self.sieve.is_none());
        plain.map(|(body, _)| body.size_hint()).unwrap_or_default()
    }
}
