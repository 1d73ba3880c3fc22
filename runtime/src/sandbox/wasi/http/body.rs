//! Bodies, counted frame by frame in both directions. A body that exceeds its limit ends the exchange, and nothing is
//! buffered.

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
use super::logged::LoggedRequest;
use super::secret::SecretFilter;
use crate::sandbox::usage::{RequestError, RequestPhase};

/// Body of a request.
pub(super) struct RequestBody<B> {
    body: Pin<Box<B>>,
    logged: Arc<LoggedRequest>,
    bytes: u64,
    max: usize,
    /// Length that the head announced.
    announced: Option<u64>,
}

impl<B> RequestBody<B> {
    pub(super) fn new(body: B, logged: Arc<LoggedRequest>, limits: &Limits, announced: Option<u64>) -> Self {
        Self { body: Box::pin(body), logged, bytes: 0, max: limits.request_body, announced }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B>
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
            self.logged.send(bytes.len());
            self.bytes += bytes.len() as u64;
            let error = if self.bytes > self.max as u64 {
                Some(RequestError::RequestTooLarge(self.max))
            } else if self.announced.is_some_and(|announced| self.bytes > announced) {
                Some(RequestError::Rejected("its body is longer than it announced".to_owned()))
            } else {
                self.logged.check_flow().err()
            };
            if let Some(error) = error {
                self.logged.fail(&error);
                return Poll::Ready(Some(Err(error.into())));
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

/// Body of a response. Its request is active until the body is read to its end or dropped.
#[derive(Debug)]
pub(in crate::sandbox) struct ResponseBody {
    /// `None` after the last frame.
    open: Option<(Incoming, Arc<LoggedRequest>)>,
    max: usize,
    between: Duration,
    silence: Pin<Box<Sleep>>,
    /// Filter for the secrets of the call, if it has any.
    filter: Option<SecretFilter>,
    /// Trailers that follow the bytes held back by the filter.
    trailers: Option<HeaderMap>,
}

impl ResponseBody {
    /// Creates a body. The server may be silent for at most `between`.
    pub(super) fn new(
        body: Incoming,
        logged: Arc<LoggedRequest>,
        limits: &Limits,
        between: Duration,
        filter: Option<SecretFilter>,
    ) -> Self {
        let silence = Box::pin(tokio::time::sleep(between));
        Self { open: Some((body, logged)), max: limits.received, between, silence, filter, trailers: None }
    }

    /// Creates a body without bytes.
    pub(super) fn empty() -> Self {
        let silence = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { open: None, max: 0, between: Duration::ZERO, silence, filter: None, trailers: None }
    }

    fn end(&mut self, error: RequestError) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        if let Some((_, logged)) = self.open.take() {
            logged.fail(&error);
        }
        self.filter = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Returns the next frame, counted.
    fn poll_counted(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        let max = self.max;
        let Some((body, logged)) = &mut self.open else { return Poll::Ready(None) };
        let frame = match Pin::new(body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                if overflowed(&error) {
                    return self.end(RequestError::ResponseTooLarge(max));
                }
                let closed_early = error.is_incomplete_message() || error.is_closed();
                let reason = if closed_early {
                    "the server closed the connection early"
                } else {
                    "the server sent a malformed body"
                };
                return self.end(RequestError::Protocol(reason));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                return match self.silence.as_mut().poll(cx) {
                    Poll::Ready(()) => self.end(RequestError::Slow(RequestPhase::Body, "the server stopped sending")),
                    Poll::Pending => Poll::Pending,
                };
            }
        };
        if let Some(bytes) = frame.data_ref()
            && let Err(error) = logged.receive(bytes.len(), max)
        {
            return self.end(error);
        }
        let next = Instant::now() + self.between;
        self.silence.as_mut().reset(next);
        Poll::Ready(Some(Ok(frame)))
    }

    /// Returns the next frame that contains no part of a secret.
    fn poll_filtered(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        loop {
            let frame = match ready!(self.poll_counted(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => Some(frame),
                None => None,
            };
            let Some(filter) = &mut self.filter else { return Poll::Ready(frame.map(Ok)) };
            let passed = match frame.map(Frame::into_data) {
                Some(Ok(data)) => filter.push(&data),
                // Trailers are the last frame.
                Some(Err(frame)) => {
                    self.trailers = frame.into_trailers().ok();
                    self.trailers.iter().try_for_each(|trailers| filter.trailers(trailers)).and_then(|()| filter.end())
                }
                None => {
                    let rest = filter.end();
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
                Err(error) => {
                    self.trailers = None;
                    return self.end(error);
                }
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = RequestError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let polled = if self.filter.is_some() { self.poll_filtered(cx) } else { self.poll_counted(cx) };
        if let Poll::Ready(None) = polled {
            self.open = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.open.as_ref().is_none_or(|(body, _)| self.filter.is_none() && body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let plain = self.open.as_ref().filter(|_| self.filter.is_none());
        plain.map(|(body, _)| body.size_hint()).unwrap_or_default()
    }
}
