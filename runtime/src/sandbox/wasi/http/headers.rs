//! Heads of requests. The host writes the request line, the `Host` header and the framing itself, so that the server
//! reads exactly the one request that was authorized.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri, Version, request::Parts};

use crate::policy::Target;
use crate::tool::{Limits, Scheme, is_method};

use crate::sandbox::usage::{MAX_HEADERS, RequestError};

/// Headers of the connection, its framing or its proxies, which only the host sets.
const OWN: [&str; 11] = [
    "connection",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns `true` for a header that only the host sets: no guest can send or read it.
pub(super) fn is_own(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "host" || OWN.contains(&name) || name.starts_with("proxy-")
}

/// Returns the target of a request, by its URL alone.
///
/// # Errors
///
/// The authority, and the reason why it is refused.
pub(super) fn target(uri: &Uri) -> Result<Target, (String, &'static str)> {
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let refused = |reason| (authority.to_owned(), reason);
    let scheme = match uri.scheme_str() {
        Some("https") => Scheme::Https,
        Some("http") => Scheme::Http,
        _ => return Err(refused("its scheme is neither `http` nor `https`")),
    };
    Target::read(scheme, authority).map_err(refused)
}

/// Prepares the head for sending: the path alone in the request line, and the target as `Host`.
///
/// # Errors
///
/// [`RequestError::Rejected`] with the reason.
pub(super) fn prepare(parts: &mut Parts, target: &Target, limits: &Limits) -> Result<(), RequestError> {
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(rejected("CONNECT and TRACE are never sent"));
    }
    if !is_method(parts.method.as_str()) {
        return Err(rejected("its method is not up to 32 capital letters and `-`"));
    }
    if let Some(name) = parts.headers.keys().find(|name| *name != HOST && is_own(name)) {
        return Err(rejected(&format!("the header `{name}` is set by the host")));
    }
    let authority = target.authority();
    for host in parts.headers.get_all(HOST) {
        let named = host.to_str().ok().and_then(|host| Target::read(target.scheme, host).ok());
        if named.as_ref() != Some(target) {
            return Err(rejected("its `Host` header names another host than its URL"));
        }
    }
    content_length(&parts.headers)?;
    let host = HeaderValue::try_from(authority).map_err(|_| rejected("its host is not valid in a header"))?;
    parts.headers.insert(HOST, host);
    let path = match parts.uri.path_and_query().map(|path| path.as_str()) {
        None | Some("") => "/".to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(query) if query.starts_with('?') => format!("/{query}"),
        Some(_) => return Err(rejected("its path does not begin with `/`")),
    };
    let length: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if path.len() + length > limits.http_head || parts.headers.len() > MAX_HEADERS {
        let max = limits.http_head;
        return Err(rejected(&format!("its URL and headers are more than {max} bytes or {MAX_HEADERS} headers")));
    }
    parts.uri = Uri::try_from(path).map_err(|_| rejected("its path is invalid"))?;
    parts.version = Version::HTTP_11;
    Ok(())
}

fn rejected(reason: &str) -> RequestError {
    RequestError::Rejected(reason.to_owned())
}

/// Returns the announced length of a request.
///
/// # Errors
///
/// [`RequestError::Rejected`] if there are several lengths, or one that is no number.
pub(super) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, RequestError> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let (Some(length), None) = (lengths.next(), lengths.next()) else {
        return match headers.contains_key(CONTENT_LENGTH) {
            true => Err(rejected("it announces several lengths")),
            false => Ok(None),
        };
    };
    let digits = length.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|text| text.parse().ok());
    length.map(Some).ok_or_else(|| rejected("its announced length is not a number"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn prepared(request: http::request::Builder) -> Result<Parts, RequestError> {
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let target = target(&parts.uri).map_err(|(_, reason)| RequestError::Denied(reason.to_owned()))?;
        prepare(&mut parts, &target, &Limits::default())?;
        Ok(parts)
    }

    #[test]
    fn what_is_sent_has_a_path_and_the_host_that_was_judged() {
        for (url, path, host) in [
            ("https://A.example/b?c=d", "/b?c=d", "a.example"),
            ("https://a.example:443", "/", "a.example"),
            ("http://a.example:8080?x", "/?x", "a.example:8080"),
            ("http://[::1]:80/", "/", "[::1]"),
        ] {
            let parts = prepared(Request::get(url)).unwrap();
            assert_eq!((parts.uri.to_string().as_str(), &parts.headers[HOST]), (path, &HeaderValue::from_static(host)));
        }
        assert!(prepared(Request::get("https://a.example/").header(HOST, "A.EXAMPLE:443")).is_ok());
    }

    #[test]
    fn a_head_that_says_two_things_is_rejected() {
        let get = || Request::get("https://a.example/");
        for (request, reason) in [
            (get().header(HOST, "b.example"), "another host"),
            (get().header(HOST, "a.example").header(HOST, "b.example"), "another host"),
            (get().header(HOST, "x@a.example"), "another host"),
            (get().header("Content-Length", "1").header("Content-Length", "1"), "several lengths"),
            (get().header("Content-Length", "+1"), "not a number"),
            (get().header("Content-Length", "1, 1"), "not a number"),
            (get().header("Transfer-Encoding", "chunked"), "`transfer-encoding`"),
            (get().header("Connection", "keep-alive"), "`connection`"),
            (get().header("Upgrade", "websocket"), "`upgrade`"),
            (get().header("Expect", "100-continue"), "`expect`"),
            (get().header("TE", "trailers"), "`te`"),
            (get().header("Proxy-Anything", "1"), "`proxy-anything`"),
            (get().method("CONNECT"), "never sent"),
            (get().method("TRACE"), "never sent"),
            (get().method("get"), "capital letters"),
            (get().method("X'$A'"), "capital letters"),
            (get().method("X`A`"), "capital letters"),
            (get().method("A|B"), "capital letters"),
            (get().method("G3T"), "capital letters"),
            (get().method("X".repeat(33).as_str()), "capital letters"),
            (get().header("x", "y".repeat(65_536)), "URL and headers"),
            (
                Request::get(format!("https://a.example/{}", "y".repeat(65_400))).header("x", "y".repeat(200)),
                "URL and headers",
            ),
        ] {
            let error = prepared(request).map(|_| ()).unwrap_err();
            assert!(matches!(&error, RequestError::Rejected(text) if text.contains(reason)), "{reason}: {error}");
        }
        let many = (0..200).fold(get(), |request, at| request.header(format!("x-{at}"), "1"));
        assert!(matches!(prepared(many), Err(RequestError::Rejected(_))));
    }

    #[test]
    fn what_breaks_a_line_is_no_header_value() {
        for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b"] {
            assert!(HeaderValue::from_bytes(value.as_bytes()).is_err(), "{value:?}");
        }
        assert!(HeaderName::from_bytes(b"a b").is_err() && HeaderName::from_bytes(b"a:").is_err());
    }

    #[test]
    fn an_authority_that_hides_another_leads_nowhere() {
        for url in ["https://allowed.example@evil.example/", "https://allowed.example./", "https://a.example:080/"] {
            assert!(prepared(Request::get(url)).is_err(), "{url}");
        }
        assert!(prepared(Request::get("ftp://a.example/")).is_err());
    }
}
