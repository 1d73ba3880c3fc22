//! Response of a host: checked headers, and a body that is read within a size and a time.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use toolcrib_foundation::text::MAX_SHOWN;

use crate::challenge::{self, Challenge};
use crate::digest::Digest;
use crate::error::{Error, What};
use crate::limits::{Limits, MAX_ERROR_BYTES, MAX_HEADER_BYTES};
use crate::retry::parse_retry_after;

/// Response with headers within their bounds.
pub(crate) struct Reply {
    response: Response,
    pub(crate) host: String,
}

impl Reply {
    pub(crate) fn new(response: Response, host: String) -> Result<Self, Error> {
        let bytes: usize = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if bytes > MAX_HEADER_BYTES {
            return Err(Error::TooLarge { what: What::Headers, limit: MAX_HEADER_BYTES as u64 });
        }
        if response.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Error::malformed(What::Headers, "the content is compressed, which was not asked for"));
        }
        Ok(Self { response, host })
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns a header that occurs once and is visible ASCII.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.response.headers().get_all(name).iter();
        let value = values.next()?;
        if values.next().is_some() { None } else { value.to_str().ok() }
    }

    /// Returns all values of a header that are visible ASCII.
    pub(crate) fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.response.headers().get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Returns `Content-Length`. For a response to `HEAD` this is the length of the content.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// Returns the media type without its parameters.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.header(CONTENT_TYPE.as_str()).and_then(|value| value.split(';').next()).map(str::trim)
    }

    /// Returns the digest that the registry announces.
    pub(crate) fn announced_digest(&self, what: What) -> Result<Option<Digest>, Error> {
        let mut values = self.response.headers().get_all("docker-content-digest").iter();
        let Some(value) = values.next() else { return Ok(None) };
        let digest = value.to_str().ok().filter(|_| values.next().is_none()).and_then(|text| text.parse().ok());
        digest.map(Some).ok_or_else(|| Error::malformed(what, "the header `Docker-Content-Digest` is not one digest"))
    }

    pub(crate) fn challenge(&self) -> Result<Option<Challenge>, Error> {
        challenge::parse(self.response.headers().get_all(WWW_AUTHENTICATE).iter().map(|value| value.as_bytes()))
    }

    /// Reads the next part of the body. `None` at its end.
    pub(crate) async fn chunk(&mut self, stall: Duration) -> Result<Option<Bytes>, Error> {
        match tokio::time::timeout(stall, self.response.chunk()).await {
            Ok(chunk) => chunk
                .map_err(|error| Error::Connection { host: self.host.clone(), source: Box::new(error.without_url()) }),
            Err(_) => Err(Error::Stalled { host: self.host.clone(), limit: stall }),
        }
    }

    /// Reads the whole body of at most `max` bytes, within the time for one exchange.
    pub(crate) async fn body(mut self, what: What, max: usize, limits: &Limits) -> Result<Bytes, Error> {
        let too_large = || Error::TooLarge { what, limit: max as u64 };
        if self.content_length().is_some_and(|length| length > max as u64) {
            return Err(too_large());
        }
        let host = self.host.clone();
        let read = async {
            let mut body = BytesMut::new();
            while let Some(chunk) = self.chunk(limits.stall).await? {
                if body.len() + chunk.len() > max {
                    return Err(too_large());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body.freeze())
        };
        let slow = |_| Err(Error::Slow { host, limit: limits.exchange });
        tokio::time::timeout(limits.exchange, read).await.unwrap_or_else(slow)
    }

    /// Turns an unexpected response into an error. Of its body only the error code is used.
    pub(crate) async fn into_error(self, what: What, credentials_sent: bool, limits: &Limits) -> Error {
        let status = self.status().as_u16();
        match status {
            404 => return Error::NotFound { what },
            401 | 403 => {
                return Error::Unauthorized { host: self.host, what, status, sent: credentials_sent };
            }
            _ => {}
        }
        let retry_after = self.header(RETRY_AFTER.as_str()).and_then(|v| parse_retry_after(v, SystemTime::now()));
        // A body that is too large or too slow changes nothing about the status.
        let code = self.body(what, MAX_ERROR_BYTES, limits).await.ok().and_then(|body| error_code(&body));
        Error::Status { what, status, code, retry_after }
    }
}

/// Returns the first code of an error body. Source: OCI distribution specification 1.1, "Error codes".
///
/// The message beside it is free text of a stranger, which could repeat a secret, and is not used.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        code: String,
    }
    let errors: Errors = serde_json::from_slice(body).ok()?;
    let code = errors.errors.into_iter().next()?.code;
    let valid = code.len() <= MAX_SHOWN && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    valid.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_is_a_short_word_or_nothing() {
        let code = |text: &str| error_code(format!(r#"{{"errors":[{{"code":"{text}","message":"m"}}]}}"#).as_bytes());
        assert_eq!(code("BLOB_UNKNOWN").as_deref(), Some("BLOB_UNKNOWN"));
        assert_eq!(code("Bearer abc123"), None);
        assert_eq!(code(&"A".repeat(MAX_SHOWN + 1)), None);
        assert_eq!(error_code(b"<html>"), None);
        assert_eq!(error_code(br#"{"errors":[]}"#), None);
    }
}
