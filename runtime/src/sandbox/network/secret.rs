//! The secrets of a request: put into it when everything about it is settled, for their one host alone, and looked for in
//! all that comes back. A call that has none passes by here.
//!
//! What would hide a secret in a response, or give it out piece by piece, is not asked for (`Accept-Encoding`, `Range`)
//! and not taken (`Content-Encoding`, `Transfer-Encoding` but `chunked`).

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, IF_RANGE, RANGE, TRANSFER_ENCODING,
};
use http::uri::PathAndQuery;
use http::{Uri, request};

use crate::policy::{Credentials, Leak, Scan, Scanner, Target};
use crate::tool::{Placement, SLOT};

use super::fault::Fault;
use super::ledger::Entry;

/// Puts the secrets that are for this target into a request, in the place of what the guest put there.
///
/// # Errors
///
/// [`Fault::Host`] where one cannot stand in a request, which no secret that was kept does.
pub(super) fn place(
    credentials: &Credentials,
    target: &Target,
    parts: &mut request::Parts,
    entry: &Entry,
) -> Result<(), Fault> {
    for hiding in [ACCEPT_ENCODING, RANGE, IF_RANGE] {
        parts.headers.remove(hiding);
    }
    for (request, secret) in &credentials.opened {
        if !request.host.is(target.scheme, &target.host, target.port) {
            continue;
        }
        let unfit = || Fault::Host(format!("the secret `{}` cannot stand in a request", request.name));
        match &request.placement {
            Placement::Header { name, format } => {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
                let value = zeroize::Zeroizing::new(format.replace(SLOT, secret.value()));
                let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unfit())?;
                value.set_sensitive(true);
                // All that the guest put there goes.
                parts.headers.insert(name, value);
            }
            Placement::Query { name } => {
                parts.uri = with_parameter(&parts.uri, name, secret.value()).ok_or_else(unfit)?;
            }
        }
        entry.carries(&request.name);
    }
    Ok(())
}

/// A path with one parameter of this name, and no other.
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

/// The name of a parameter as a server reads it.
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

/// Looks for secrets in the head of a response.
///
/// # Errors
///
/// [`Fault::Secret`] where one is in it, [`Fault::Protocol`] where one could be hidden in its body.
pub(super) fn check_head(scanner: &Scanner, headers: &HeaderMap) -> Result<(), Fault> {
    let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return Err(Fault::Protocol("the server sent an encoded body, which cannot be scanned for secrets"));
    }
    // A coding of the transfer hides as much as one of the content, and only this one is undone.
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if !codings.next().is_none_or(chunked) || codings.next().is_some() {
        return Err(Fault::Protocol("the server used a transfer encoding other than chunked"));
    }
    check_headers(scanner, headers)
}

/// Looks for secrets in headers or trailers: in each, and across those of one name.
fn check_headers(scanner: &Scanner, headers: &HeaderMap) -> Result<(), Fault> {
    let mut line = Vec::new();
    for name in headers.keys() {
        line.extend_from_slice(name.as_str().as_bytes());
        line.extend_from_slice(b": ");
        for value in headers.get_all(name) {
            scanner.check(value.as_bytes()).map_err(fault)?;
            line.extend_from_slice(value.as_bytes());
        }
        line.push(b'\n');
    }
    scanner.check(&line).map_err(fault)
}

fn fault(Leak(name): Leak) -> Fault {
    Fault::Secret(name)
}

/// The body of a response, looked through as it comes.
#[derive(Debug)]
pub(super) struct Sieve {
    scanner: Arc<Scanner>,
    scan: Scan,
}

impl Sieve {
    pub(super) fn new(scanner: &Arc<Scanner>) -> Self {
        Self { scanner: scanner.clone(), scan: Scan::new(scanner.clone()) }
    }

    /// What of the body may be handed on when this part has come.
    ///
    /// # Errors
    ///
    /// [`Fault::Secret`].
    pub(super) fn push(&mut self, part: &[u8]) -> Result<bytes::Bytes, Fault> {
        self.scan.push(part).map_err(fault)
    }

    /// The rest, when nothing more comes.
    ///
    /// # Errors
    ///
    /// [`Fault::Secret`].
    pub(super) fn end(&mut self) -> Result<bytes::Bytes, Fault> {
        self.scan.end().map_err(fault)
    }

    /// Looks through the trailers.
    ///
    /// # Errors
    ///
    /// [`Fault::Secret`].
    pub(super) fn trailers(&self, trailers: &HeaderMap) -> Result<(), Fault> {
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
                Err(Fault::Protocol(_)) => false,
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
        for (path, kept) in [
            ("/", "/?"),
            ("/x?a=1", "/x?a=1&"),
            ("/x?key=other&a=1&key", "/x?a=1&"),
            ("/x?k%65y=other&%6bey=2&&", "/x?"),
            ("/x?keys=1&Key=2&a=key", "/x?keys=1&Key=2&a=key&"),
            ("/x?%=1&%zz=2", "/x?%=1&%zz=2&"),
        ] {
            assert_eq!(of(path), format!("{kept}{sent}"), "{path}");
        }
    }
}
