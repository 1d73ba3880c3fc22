//! Answers of the console. Every one has the headers that confine a page: no script but the console's own, no frames,
//! nothing from elsewhere, nothing stored.

use std::io;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use maud::Markup;

use super::layout;

/// Answer.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Style sheet of all pages.
const STYLE: &str = include_str!("style.css");
/// Script of all pages, which keeps them current.
const SCRIPT: &str = include_str!("live.js");
/// Content that a browser may use on a page: scripts are files of the console, and no text becomes a script or markup.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
                              img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
                              require-trusted-types-for 'script'; trusted-types 'none'";
/// Headers of every answer. With `same-origin`, a browser names its origin with forms, which it would not with `no-referrer`,
/// and tells other origins nothing.
const HEADERS: [(HeaderName, &str); 9] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-dns-prefetch-control"), "off"),
];

/// Request that is not answered with a page of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The head of the request is too large.
    Head,
    /// The body of the request is too large.
    Body,
    /// The request did not arrive in time, or is not complete.
    Late,
    /// The request names another host.
    Host,
    /// Another page sent the request, or shows this one inside of it.
    Page,
    /// The token is wrong.
    Token,
    /// There is no session.
    Session,
    /// The form is not one of the session.
    Form,
    /// The session can only look.
    ReadOnly,
    /// The session starts no runs.
    NoRuns,
    /// The method has no meaning here.
    Method,
    /// Too many open pages to events.
    Listeners,
}

impl Refusal {
    fn text(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Head => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "Request too large", "Shorten the search."),
            Self::Body => (StatusCode::PAYLOAD_TOO_LARGE, "Request too large", "Shorten the text."),
            Self::Late => (StatusCode::REQUEST_TIMEOUT, "Request incomplete", "Send it again."),
            Self::Host => {
                (StatusCode::FORBIDDEN, "Another host was named", "Open the address that `toolcrib console` printed.")
            }
            Self::Page => (
                StatusCode::FORBIDDEN,
                "Sent by another page",
                "Only pages of the console may send this. Open the address that `toolcrib console` printed.",
            ),
            Self::Token => (
                StatusCode::FORBIDDEN,
                "Unknown token",
                "The token changes at each start: open the address that `toolcrib console` printed last.",
            ),
            Self::Session => (
                StatusCode::FORBIDDEN,
                "No session",
                "This address has no token. Open the address that `toolcrib console` printed, in this browser. If you \
                 did, and came here by a link, reload this page.",
            ),
            Self::Form => (StatusCode::FORBIDDEN, "Unknown form", "Reload the page, and decide again."),
            Self::ReadOnly => {
                (StatusCode::FORBIDDEN, "This session is read-only", "The other printed link can approve.")
            }
            Self::NoRuns => (
                StatusCode::FORBIDDEN,
                "This session starts no runs",
                "The link that `toolcrib console --start-runs` prints last can.",
            ),
            Self::Listeners => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many open pages",
                "Close pages of the console, or reload this one to see what is new.",
            ),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "Unknown method", "Use a page of the console."),
        }
    }

    /// Creates the answer.
    pub(super) fn answer(self) -> Answer {
        let (status, title, advice) = self.text();
        page(status, layout::notice(title, advice))
    }
}

/// Creates an answer with a page.
pub(super) fn page(status: StatusCode, page: Markup) -> Answer {
    with_type(status, "text/html; charset=utf-8", page.into_string())
}

/// Creates the answer with the style sheet.
pub(super) fn style() -> Answer {
    with_type(StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned())
}

/// Creates the answer with the script.
pub(super) fn script() -> Answer {
    with_type(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned())
}

/// Creates an answer with events, which has no end of its own.
pub(super) fn events(events: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    with_body("text/event-stream", streamed(events))
}

/// Creates an answer that a browser stores as a file. Where its stream ends with an error, the connection breaks, so that the
/// browser does not take the part for the whole.
pub(super) fn file(
    name: &str,
    kind: &'static str,
    content: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Answer {
    let mut answer = with_body(kind, streamed(content));
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let disposition = disposition.unwrap_or(HeaderValue::from_static("attachment"));
    answer.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    answer
}

/// Creates an answer that leads to another address of the console.
pub(super) fn lead(to: &str) -> Answer {
    let mut answer = with_type(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", String::new());
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(header::LOCATION, to);
    }
    answer
}

fn with_type(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let length = HeaderValue::from(text.len());
    let mut answer = with_body(kind, Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_LENGTH, length);
    answer
}

fn streamed(content: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> UnsyncBoxBody<Bytes, io::Error> {
    StreamBody::new(content.map_ok(Frame::data)).boxed_unsync()
}

fn with_body(kind: &'static str, body: UnsyncBoxBody<Bytes, io::Error>) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    answer
}
