//! Placement of a secret in a request: a header or a query parameter.

use std::fmt;

/// Placeholder for the secret in the format of a header.
pub const SECRET_PLACEHOLDER: &str = "{}";
/// Headers that control the framing or routing of a request. A secret in one of them would change the meaning of the
/// request.
const FRAMING: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "accept-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "expect",
    "range",
];

/// Placement of a secret in a request. It replaces a value that the guest set there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Placement in a header.
    Header {
        /// Name of the header, lower case.
        name: String,
        /// Value of the header, with `{}` as the placeholder for the secret.
        format: String,
    },
    /// Placement in a query parameter.
    Query {
        /// Name of the parameter.
        name: String,
    },
}

/// Error of creating a [`Placement`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// Invalid name of a header.
    #[error("{0:?} is not the name of a header: letters, digits, `_` and `-`")]
    HeaderName(String),
    /// Header that the host sets itself.
    #[error("the header `{0}` is set by the host and cannot carry a secret")]
    FramingHeader(String),
    /// Format of a header without exactly one placeholder.
    #[error(
        "{0:?} is not a valid format: one line with one `{SECRET_PLACEHOLDER}`, such as \"Bearer {SECRET_PLACEHOLDER}\""
    )]
    Format(String),
    /// Invalid name of a query parameter.
    #[error("{0:?} is not the name of a parameter: letters, digits, `.`, `_` and `-`")]
    QueryName(String),
    /// Unknown placement.
    #[error("{0:?} is not a place in a request; write `header:NAME` or `query:NAME`")]
    Place(String),
}

impl Placement {
    /// Creates a placement in a header with the value `format`, in which the secret replaces `{}`.
    ///
    /// # Errors
    ///
    /// [`PlacementError`] if the header must not carry a secret, if its name has characters other than letters, digits,
    /// `_` and `-` (a flag with the name must be safe in a shell), or if the format does not have exactly one `{}`.
    pub fn header(name: &str, format: &str) -> Result<Self, PlacementError> {
        let lower = name.to_ascii_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if !lower.bytes().all(is_plain) || http::HeaderName::from_bytes(lower.as_bytes()).is_err() {
            return Err(PlacementError::HeaderName(name.to_owned()));
        }
        if FRAMING.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            return Err(PlacementError::FramingHeader(lower));
        }
        if format.matches(SECRET_PLACEHOLDER).count() != 1 || http::HeaderValue::from_str(format).is_err() {
            return Err(PlacementError::Format(format.to_owned()));
        }
        Ok(Self::Header { name: lower, format: format.to_owned() })
    }

    /// Creates a placement in a query parameter.
    ///
    /// # Errors
    ///
    /// [`PlacementError`] if the name is empty or has characters other than letters, digits, `.`, `_` and `-`.
    pub fn query(name: &str) -> Result<Self, PlacementError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err(PlacementError::QueryName(name.to_owned()));
        }
        Ok(Self::Query { name: name.to_owned() })
    }

    /// Formats the placement without its format: `header:NAME` or `query:NAME`.
    pub fn place(&self) -> String {
        match self {
            Placement::Header { name, .. } => format!("header:{name}"),
            Placement::Query { name } => format!("query:{name}"),
        }
    }

    /// Parses the placement of a flag, which has no format.
    ///
    /// # Errors
    ///
    /// [`PlacementError`] if the text is neither `header:NAME` nor `query:NAME`, or if a secret must not be placed
    /// there.
    pub fn parse(place: &str) -> Result<Self, PlacementError> {
        match place.split_once(':') {
            Some(("header", name)) => Self::header(name, SECRET_PLACEHOLDER),
            Some(("query", name)) => Self::query(name),
            _ => Err(PlacementError::Place(place.to_owned())),
        }
    }

    /// Returns `true` if both name the same header or the same query parameter, whatever their formats.
    pub fn shares_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Placement::Header { name: one, .. }, Placement::Header { name: other, .. })
            | (Placement::Query { name: one }, Placement::Query { name: other }) => one == other,
            _ => false,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Header { name, .. } => write!(f, "header {name}"),
            Placement::Query { name } => write!(f, "query {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_frames_a_request_carries_no_secret() {
        assert!(Placement::header("Authorization", "Bearer {}").is_ok());
        for (name, format) in [
            ("Host", "{}"),
            ("Proxy-Authorization", "{}"),
            ("a b", "{}"),
            ("x-`reboot`", "{}"),
            ("x$y", "{}"),
            ("", "{}"),
            ("x", "none"),
            ("x", "{}{}"),
            ("x", "a\r\nb: {}"),
        ] {
            assert!(Placement::header(name, format).is_err(), "{name}: {format}");
        }
        assert!(
            Placement::query("api_key").is_ok() && Placement::query("a&b").is_err() && Placement::query("").is_err()
        );
    }
}
