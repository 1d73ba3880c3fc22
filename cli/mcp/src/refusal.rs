//! Refusals of requests over HTTP: the status, the reason with the way out, and the headers that programs read.

use http::{HeaderName, HeaderValue, StatusCode, header};

/// Reason to refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request names a host that is not served.
    Host,
    /// The request comes from a page of another origin.
    Origin,
    /// The request has no token.
    NoToken,
    /// No client has the token.
    UnknownToken,
    /// The client sends too many requests in one second.
    Rate,
    /// Too many requests run.
    Running,
    /// There are too many conversations.
    Conversations,
    /// The head is too large.
    Head,
    /// The body is too large.
    Body,
    /// The body did not arrive in time.
    Late,
    /// The body ended before its length.
    Unreadable,
    /// The conversation has ended, or is another client's.
    UnknownConversation,
    /// Nothing is served at the path.
    UnknownPath,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::UnknownToken => StatusCode::UNAUTHORIZED,
            Self::Rate => StatusCode::TOO_MANY_REQUESTS,
            Self::Running | Self::Conversations => StatusCode::SERVICE_UNAVAILABLE,
            Self::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::UnknownConversation | Self::UnknownPath => StatusCode::NOT_FOUND,
        }
    }

    /// Returns the text of the answer: the reason, and what to do.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Host => "the host of the request is not served: name it with `--host`\n",
            Self::Origin => "pages of this origin may not send requests: name it with `--origin`\n",
            Self::NoToken => {
                "a token is required: send `Authorization: Bearer TOKEN`; `toolcrib mcp token new NAME` creates one\n"
            }
            Self::UnknownToken => {
                "the token is not known: it was revoked or mistyped; `toolcrib mcp token new NAME` creates another\n"
            }
            Self::Rate => "too many requests in one second: send fewer, or raise `--max-rate`\n",
            Self::Running => "too many requests at once: repeat the request later, or raise `--max-running`\n",
            Self::Conversations => {
                "too many conversations at once: end one with `DELETE`, repeat the request later, or raise \
                 `--max-sessions`\n"
            }
            Self::Head => "the head is too large: send fewer or shorter headers\n",
            Self::Body => "the body is too large: send less, or raise `--max-body`\n",
            Self::Late => "the body did not arrive in time: send it faster, or raise `--arrival-timeout`\n",
            Self::Unreadable => "the body ended early: send as many bytes as the head states\n",
            Self::UnknownConversation => {
                "the conversation is not known: it has ended, or belongs to another token; begin one with `initialize`\n"
            }
            Self::UnknownPath => "not found: use `/mcp`, `/healthz` or `/metrics`\n",
        }
    }

    /// Returns the header that tells programs what to do.
    pub(super) fn header(self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::NoToken => (header::WWW_AUTHENTICATE, "Bearer"),
            // RFC 6750, section 3.1.
            Self::UnknownToken => (
                header::WWW_AUTHENTICATE,
                "Bearer error=\"invalid_token\", error_description=\"the token is not known\"",
            ),
            Self::Rate | Self::Running | Self::Conversations => (header::RETRY_AFTER, "1"),
            _ => return None,
        };
        Some((name, HeaderValue::from_static(value)))
    }
}
