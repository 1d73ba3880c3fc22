//! Refusals of requests over HTTP: the status, the reason with the way out, and the headers that programs read.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, StatusCode, header};
use toolcrib_shared_state::{QuotaExceeded, QuotaPart};

use super::access::TokenScope;
use super::sign_in::{SignIn, SignInFault};

/// Seconds after which a store that did not answer may do so.
const STORE_WAIT: u64 = 2;

/// Returns the name of a part of a quota.
fn part_name(part: QuotaPart) -> &'static str {
    match part {
        QuotaPart::Calls => "calls",
        QuotaPart::ProcessorTime => "processor time",
        QuotaPart::Bytes => "bytes",
        QuotaPart::Running => "calls at once",
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
    /// The token has expired.
    EndedToken,
    /// The token is not for this part of the server.
    Scope(TokenScope),
    /// The person is refused.
    SignIn(SignInFault),
    /// The client sends too many requests in one second.
    Rate,
    /// A quota of the token is used up.
    Quota(QuotaExceeded),
    /// The request needs the shared store, which does not answer.
    Store,
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
            Self::SignIn(fault) => fault.status(),
            Self::Rate | Self::Quota(..) => StatusCode::TOO_MANY_REQUESTS,
            Self::Running | Self::Conversations | Self::UnreadTokens | Self::Store => StatusCode::SERVICE_UNAVAILABLE,
            Self::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::UnknownConversation | Self::UnknownPath => StatusCode::NOT_FOUND,
        }
    }

    /// Returns the text of the answer: the reason, and what to do, also where people sign in.
    pub(super) fn text(self, has_sign_in: bool) -> Cow<'static, str> {
        let text = match self {
            Self::Quota(QuotaExceeded { part, wait }) => {
                return format!("the quota of {} is used up: repeat the request in {wait} s\n", part_name(part)).into();
            }
            Self::Store => {
                "the shared store does not answer, and the request needs it for its quota or its key: nothing was done; repeat the \
                 request later\n"
            }
            Self::SignIn(fault) => return fault.text(),
            Self::Host => "the host of the request is not served: name it with `--host`\n",
            Self::Origin => "pages of this origin may not send requests: name it with `--origin`\n",
            Self::NoToken if has_sign_in => {
                "a token is required: sign in, such as with `toolcrib login URL`, or send `Authorization: Bearer TOKEN` with a \
                 token of this server; `toolcrib mcp token new NAME` creates one\n"
            }
            Self::NoToken => {
                "a token is required: send `Authorization: Bearer TOKEN`; `toolcrib mcp token new NAME` creates one\n"
            }
            Self::UnknownToken => {
                "the token is not known: it was revoked or mistyped; `toolcrib mcp token new NAME` creates another\n"
            }
            Self::UnreadTokens => "the server cannot read its tokens: its messages name the mistake\n",
            Self::EndedToken => "the token has expired; `toolcrib mcp token new NAME` creates another\n",
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

    /// Returns the header that tells programs what to do, also where people sign in for this part of the server.
    pub(super) fn header(self, sign_in: Option<&SignIn>, part: TokenScope) -> Option<(HeaderName, HeaderValue)> {
        let text = match self {
            Self::NoToken | Self::UnknownToken | Self::EndedToken | Self::Scope(_) | Self::SignIn(_) => {
                let code = self.code()?;
                // A token of the server's own gets its scopes here, and not at an issuer.
                let sign_in = sign_in.filter(|_| !matches!(self, Self::Scope(_)));
                let challenge = match (sign_in, code.as_deref()) {
                    (Some(sign_in), code) => sign_in.challenge(code, part),
                    (None, Some(code)) => format!("Bearer {code}"),
                    (None, None) => "Bearer".to_owned(),
                };
                return Some((header::WWW_AUTHENTICATE, challenge.parse().ok()?));
            }
            Self::Quota(exceeded) => return Some((header::RETRY_AFTER, exceeded.wait.into())),
            Self::Store => return Some((header::RETRY_AFTER, STORE_WAIT.into())),
            Self::Rate | Self::Running | Self::Conversations => "1",
            _ => return None,
        };
        Some((header::RETRY_AFTER, HeaderValue::from_static(text)))
    }

    /// Returns the code for a refused token (RFC 6750, section 3.1), `Some(None)` without a token; `None` if no other token helps.
    fn code(self) -> Option<Option<String>> {
        let invalid = |reason: &str| format!("error=\"invalid_token\", error_description=\"{reason}\"");
        match self {
            Self::UnknownToken => Some(Some(invalid("the token is not known"))),
            Self::EndedToken => Some(Some(invalid("the token has expired"))),
            Self::SignIn(SignInFault::Token(fault)) => Some(Some(invalid(fault.as_str()))),
            Self::Scope(part) => Some(Some(format!("error=\"insufficient_scope\", scope=\"{}\"", part.as_str()))),
            Self::SignIn(SignInFault::Scope(_)) => Some(Some("error=\"insufficient_scope\"".to_owned())),
            Self::SignIn(_) => None,
            _ => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_request_without_a_token_learns_where_and_for_which_scope_to_sign_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.toml");
        let scopes = "[scopes]\ncalls = \"tools:call\"\nmetrics = \"tools:read\"\n";
        let issuer = "[[issuers]]\nurl = \"https://login.example.com\"\nrules = [{ claims = {} }]\n";
        fs::write(&path, format!("{scopes}{issuer}")).unwrap();
        let sign_in = SignIn::open(&path, "https://tools.example.com/mcp".parse().unwrap()).unwrap();
        for (part, scope) in [(TokenScope::Calls, "tools:call"), (TokenScope::Metrics, "tools:read")] {
            let (_, challenge) = Refusal::NoToken.header(Some(&sign_in), part).unwrap();
            assert!(challenge.to_str().unwrap().ends_with(&format!("scope=\"{scope}\"")), "{challenge:?}");
        }
        assert!(Refusal::NoToken.text(true).contains("sign in"));
        assert!(!Refusal::NoToken.text(false).contains("sign in"));
    }
}
