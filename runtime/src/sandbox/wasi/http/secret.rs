//! Secrets of a request: inserted after every check, for their one host only, and searched for in the whole response. A
//! call without secrets skips this.
//!
//! An encoding that could hide a secret, or a range that could return it in pieces, is not requested
//! (`Accept-Encoding`, `Range`) and not accepted (`Content-Encoding`, `Transfer-Encoding` other than `chunked`).

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, IF_RANGE, RANGE, TRANSFER_ENCODING,
};
use http::uri::PathAndQuery;
use http::{Uri, request};

use crate::policy::{Credentials, Leak, Scan, Scanner, Target};
use crate::tool::{Placement, SECRET_PLACEHOLDER};

use super::logged::LoggedRequest;
use crate::sandbox::usage::RequestError;

/// Inserts the secrets for this target into a request, replacing the guest's values.
///
/// # Errors
///
/// [`RequestError::Host`] if a secret is not valid in a request, which the store of secrets rules out.
pub(super) fn insert(
    credentials: &Credentials,
    target: &Target,
    parts: &mut request::Parts,
    logged: &LoggedRequest,
) -> Result<(), RequestError> {
    for hiding in [ACCEPT_ENCODING, RANGE, IF_RANGE] {
        parts.headers.remove(hiding);
    }
    for (request, secret) in &credentials.secrets {
        if !request.host.matches(target.scheme, &target.host, target.port) {
            continue;
        }
        let unfit = || RequestError::Host(format!("the secret `{}` cannot be put into a request", request.name));
        match &request.placement {
            Placement::Header { name, format } => {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
                let value = zeroize::Zeroizing::new(format.replace(SECRET_PLACEHOLDER, secret.value()));
                let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unfit())?;
                value.set_sensitive(true);
                // Replaces every value of the guest.
                parts.headers.insert(name, value);
            }
            Placement::Query { name } => {
                parts.uri = with_parameter(&parts.uri, name, secret.value()).ok_or_else(unfit)?;
            }
        }
        logged.carry(&request.name);
    }
    Ok(())
}

/// Returns a path with exactly one parameter of this name.
fn with_parameter(uri: &Uri, name: &str, value: &str) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    let named = |parameter: &&str| decoded(parameter.split('=').next().unwrap_or_default()) == name.as_bytes();
    let others = query.split('&').filter(|parameter| !parameter.is_empty() && !named(parameter));
    let mut path = zeroize::Zeroizing::new(format!("{}?", uri.path()));
    for other in others {
        path.push_str(other);
        path.push('&');
    }
    path.push_str(name);
    path.push('=');
    for byte in value.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => path.push(char::from(byte)),
            false => path.push_str(&format!("%{byte:02X}")),
        }
    }
    PathAndQuery::try_from(path.as_str()).ok().map(Uri::from)
}

/// Decodes the name of a parameter as a server does.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = hex.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match hex {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = behind;
            }
        }
    }
    bytes
}

/// Searches the head of a response for secrets.
///
/// # Errors
///
/// [`RequestError::Secret`] if it contains one, [`RequestError::Protocol`] if its body could hide one.
pub(super) fn check_head(scanner: &Scanner, headers: &HeaderMap) -> Result<(), RequestError> {
    let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return Err(RequestError::Protocol("the server sent an encoded body, which cannot be scanned for secrets"));
    }
    // A transfer coding hides a secret as well as a content coding, and only `chunked` is decoded.
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if !codings.next().is_none_or(chunked) || codings.next().is_some() {
        return Err(RequestError::Protocol("the server used a transfer encoding other than chunked"));
    }
    check_headers(scanner, headers)
}

/// Searches headers or trailers for secrets: in each value, and across the values of one name.
fn check_headers(scanner: &Scanner, headers: &HeaderMap) -> Result<(), RequestError> {
    let mut line = Vec::new();
    for name in headers.keys() {
        line.extend_from_slice(name.as_str().as_bytes());
        line.extend_from_slice(b": ");
        for value in headers.get_all(name) {
            scanner.check(value.as_bytes()).map_err(leak_error)?;
            line.extend_from_slice(value.as_bytes());
        }
        line.push(b'\n');
    }
    scanner.check(&line).map_err(leak_error)
}

fn leak_error(Leak(name): Leak) -> RequestError {
    RequestError::Secret(name)
}

/// Filter that searches the body of a response for secrets.
#[derive(Debug)]
pub(super) struct SecretFilter {
    scanner: Arc<Scanner>,
    scan: Scan,
}

impl SecretFilter {
    pub(super) fn new(scanner: &Arc<Scanner>) -> Self {
        Self { scanner: scanner.clone(), scan: Scan::new(scanner.clone()) }
    }

    /// Returns the bytes that can be passed on after this part.
    ///
    /// # Errors
    ///
    /// [`RequestError::Secret`].
    pub(super) fn push(&mut self, part: &[u8]) -> Result<bytes::Bytes, RequestError> {
        self.scan.push(part).map_err(leak_error)
    }

    /// Returns the remaining bytes after the last part.
    ///
    /// # Errors
    ///
    /// [`RequestError::Secret`].
    pub(super) fn end(&mut self) -> Result<bytes::Bytes, RequestError> {
        self.scan.end().map_err(leak_error)
    }

    /// Searches the trailers.
    ///
    /// # Errors
    ///
    /// [`RequestError::Secret`].
    pub(super) fn trailers(&self, trailers: &HeaderMap) -> Result<(), RequestError> {
        check_headers(&self.scanner, trailers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_encoded_in_any_way_but_in_chunks_is_not_taken() {
        let taken = |headers: &[(HeaderName, &'static str)]| {
            let all = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            match check_head(&Scanner::default(), &all) {
                Ok(()) => true,
                Err(RequestError::Protocol(_)) => false,
                Err(other) => panic!("{other}"),
            }
        };
        for headers in [&[][..], &[(TRANSFER_ENCODING, "chunked")], &[(TRANSFER_ENCODING, "Chunked")]] {
            assert!(taken(headers), "{headers:?}");
        }
        for coding in ["gzip, chunked", "gzip", "deflate,chunked", "chunked, chunked", "identity", ""] {
            assert!(!taken(&[(TRANSFER_ENCODING, coding)]), "{coding}");
        }
        assert!(!taken(&[(TRANSFER_ENCODING, "gzip"), (TRANSFER_ENCODING, "chunked")]));
        assert!(!taken(&[(TRANSFER_ENCODING, "chunked"), (TRANSFER_ENCODING, "chunked")]));
        assert!(!taken(&[(CONTENT_ENCODING, "gzip")]) && taken(&[(CONTENT_ENCODING, "identity")]));
    }

    #[test]
    fn a_parameter_replaces_every_spelling_of_itself() {
        let of = |path: &str| with_parameter(&path.parse().unwrap(), "key", "a b/+&=ä").unwrap().to_string();
        let sent = "key=a%20b%2F%2B%26%3D%C3%A4";
        for (path, rest) in [
            ("/", "/?"),
            ("/x?a=1", "/x?a=1&"),
            ("/x?key=other&a=1&key", "/x?a=1&"),
            ("/x?k%65y=other&%6bey=2&&", "/x?"),
            ("/x?keys=1&Key=2&a=key", "/x?keys=1&Key=2&a=key&"),
            ("/x?%=1&%zz=2", "/x?%=1&%zz=2&"),
        ] {
            assert_eq!(of(path), format!("{rest}{sent}"), "{path}");
        }
    }
}
