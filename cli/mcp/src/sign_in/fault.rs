//! Reasons to refuse a person, with the status and the text for the answer.

use std::borrow::Cow;

use http::StatusCode;

use crate::access::TokenScope;

/// Reason to refuse a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// It is no signed token, or a part of it is malformed.
    Malformed,
    /// It is a token for another purpose, such as an ID token.
    Kind,
    /// Its algorithm is not accepted.
    Algorithm,
    /// It has an extension that must be understood.
    Extension,
    /// It is of an issuer that is not trusted.
    Issuer,
    /// The issuer has no such key.
    Key,
    /// The signature is of another key or another text.
    Signature,
    /// It is for another server.
    Audience,
    /// It has expired.
    Expired,
    /// It is not valid yet, or was issued in the future.
    Early,
    /// A required claim is missing or malformed.
    Claims,
    /// It is bound to a key that the request does not prove.
    Bound,
}

/// Reason to refuse a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInFault {
    /// The token is not valid.
    Token(TokenFault),
    /// The token does not have the scope for this part of the server.
    Scope(TokenScope),
    /// No rule admits the person to this part of the server.
    NoRule,
    /// The keys of the issuer are not known.
    UnknownKeys,
}

impl From<TokenFault> for SignInFault {
    fn from(fault: TokenFault) -> Self {
        Self::Token(fault)
    }
}

impl TokenFault {
    /// Describes the fault.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "the token is not a signed JWT of at most 8 KiB",
            Self::Kind => "the token is not an access token, but one for another purpose, such as an ID token",
            Self::Algorithm => "the algorithm of the token is not accepted",
            Self::Extension => "the token has an extension that the server does not know",
            Self::Issuer => "the token is of an issuer that the server does not trust",
            Self::Key => "the issuer has no such key for signatures",
            Self::Signature => "the signature of the token is wrong",
            Self::Audience => "the token is for another server",
            Self::Expired => "the token has expired",
            Self::Early => "the token is not valid yet",
            Self::Claims => "the token lacks a claim, or has a malformed one",
            Self::Bound => "the token is bound to a key that the request does not prove",
        }
    }
}

impl SignInFault {
    /// Returns the status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::Scope(_) | Self::NoRule => StatusCode::FORBIDDEN,
            Self::UnknownKeys => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the text of the answer: the reason, and what to do.
    pub(crate) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Token(fault) => format!("{}: sign in again\n", fault.as_str()).into(),
            Self::Scope(scope) => format!("the token lacks the scope for {}: sign in again\n", scope.as_str()).into(),
            Self::NoRule => "no rule of the server admits you here: ask its administrator\n".into(),
            Self::UnknownKeys => {
                "the keys of the issuer cannot be read at present: the messages of the server name the reason\n".into()
            }
        }
    }
}
