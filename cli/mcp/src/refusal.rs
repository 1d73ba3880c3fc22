//! Refusals of requests over HTTP: the status, the reason with the way out, and the headers that programs read.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, StatusCode, header};

use super::access::TokenScope;

/// Part of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaPart {
    Calls,
    ProcessorTime,
    Bytes,
    /// Calls at once.
    Running,
}

impl QuotaPart {
    fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::ProcessorTime => "processor time",
            Self::Bytes => "bytes",
            Self::Running => "calls at once",
        }
    }
}

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
    /// The tokens cannot be read.
    UnreadTokens,
    /// The token has ended.
    EndedToken,
    /// The token is not for this part of the server.
    Scope(TokenScope),
    /// The client sends too many requests in one second.
    Rate,
    /// A quota of the token is used up, and the seconds until it begins anew.
    Quota(QuotaPart, u64),
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
            Self::Host | Self::Origin | Self::Scope(_) => StatusCode::FORBIDDEN,
            Self::NoToken | Self::UnknownToken | Self::EndedToken => StatusCode::UNAUTHORIZED,
            Self::Rate | Self::Quota(..) => StatusCode::TOO_MANY_REQUESTS,
            Self::Running | Self::Conversations | Self::UnreadTokens => StatusCode::SERVICE_UNAVAILABLE,
            Self::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::UnknownConversation | Self::UnknownPath => StatusCode::NOT_FOUND,
        }
    }

    /// Returns the text of the answer: the reason, and what to do.
    pub(super) fn text(self) -> Cow<'static, str> {
        let text = match self {
            Self::Quota(part, seconds) => {
                let part = part.as_str();
                return format!("the quota of {part} is used up: repeat the request in {seconds} s\n").into();
            }
            Self::Host => "the host of the request is not served: name it with `--host`\n",
            Self::Origin => "pages of this origin may not send requests: name it with `--origin`\n",
            Self::NoToken => {
                "a token is required: send `Authorization: Bearer TOKEN`; `toolcrib mcp token new NAME` creates one\n"
            }
            Self::UnknownToken => {
                "the token is not known: it was revoked or mistyped; `toolcrib mcp token new NAME` creates another\n"
            }
            Self::UnreadTokens => "the server cannot read its tokens: its messages name the mistake\n",
            Self::EndedToken => "the token has ended; `toolcrib mcp token new NAME` creates another\n",
            Self::Scope(TokenScope::Calls) => {
                "the token is not for calls: create one with `toolcrib mcp token new NAME --scope=calls`\n"
            }
            Self::Scope(TokenScope::Metrics) => {
                "the token is not for figures: create one with `toolcrib mcp token new NAME --scope=metrics`\n"
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
            Self::UnknownPath => "not found: use `/mcp`, `/healthz`, `/readyz` or `/metrics`\n",
        };
        text.into()
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
            Self::EndedToken => {
                (header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\", error_description=\"the token has ended\"")
            }
            Self::Scope(TokenScope::Calls) => {
                (header::WWW_AUTHENTICATE, "Bearer error=\"insufficient_scope\", scope=\"calls\"")
            }
            Self::Scope(TokenScope::Metrics) => {
                (header::WWW_AUTHENTICATE, "Bearer error=\"insufficient_scope\", scope=\"metrics\"")
            }
            Self::Quota(_, seconds) => return Some((header::RETRY_AFTER, seconds.into())),
            Self::Rate | Self::Running | Self::Conversations => (header::RETRY_AFTER, "1"),
            _ => return None,
        };
        Some((name, HeaderValue::from_static(value)))
    }
}
