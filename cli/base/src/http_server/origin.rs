//! Origins of web pages that may send requests, and the CORS headers (Fetch standard) that let a page from another
//! origin send them.

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

/// Maximum length of the header list that a browser asks for, in bytes.
const MAX_REQUESTED: usize = 1024;
/// Methods of the protocol.
const METHODS: &str = "GET, POST, DELETE";
/// Headers of answers that a page may read.
const EXPOSED: &str = "mcp-session-id, www-authenticate, retry-after";
/// Time for which a browser may keep the answer to its question, in seconds.
const MAX_AGE: &str = "600";

/// Form of an origin, for errors.
const EXPECTED: &str =
    "expected an origin without a path, such as `https://app.example.com` or `http://localhost:3000`";

/// Origin of a page: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(url::Origin);

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| EXPECTED)?;
        let (_, rest) = text.split_once("://").ok_or(EXPECTED)?;
        let is_origin = matches!(url.scheme(), "http" | "https") && !rest.contains(['/', '?', '#', '@', '\\', '*']);
        if is_origin { Ok(Self(url.origin())) } else { Err(EXPECTED) }
    }
}

impl fmt::Display for Origin {
    /// Writes the origin with its port, even if it is the scheme's default port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            url::Origin::Tuple(scheme, host, port) => write!(f, "{scheme}://{host}:{port}"),
            url::Origin::Opaque(_) => f.write_str("null"),
        }
    }
}

/// Origins that may send requests.
#[derive(Debug, Clone)]
pub struct Origins(Vec<Origin>);

impl Origins {
    /// Creates the list of the origins that may send requests.
    pub fn new(allowed: Vec<Origin>) -> Self {
        Self(allowed)
    }

    /// Lists the origins as texts with ports.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Origin::to_string)
    }

    /// Returns the origin of a request, as the request states it, if it may send requests.
    pub fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut all = headers.get_all(header::ORIGIN).iter();
        let origin = all.next().filter(|_| all.next().is_none())?;
        let stated: Origin = origin.to_str().ok()?.parse().ok()?;
        self.0.contains(&stated).then(|| origin.clone())
    }

    /// Returns the headers of the answer to a browser that asks whether a page may send a request; `None` if the request does
    /// not ask this, or the page may not.
    pub fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<HeaderMap> {
        let is_question = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let origin = self.allowed(headers).filter(|_| is_question)?;
        let mut answer = HeaderMap::new();
        share(&mut answer, origin);
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        if let Some(requested) = requested.filter(|list| list.len() <= MAX_REQUESTED) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
        }
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        Some(answer)
    }
}

/// Lets a page of this origin read an answer.
pub fn share(answer: &mut HeaderMap, origin: HeaderValue) {
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    answer.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn an_origin_has_a_scheme_a_host_and_a_port_and_nothing_else() {
        let text = |text: &str| text.parse::<Origin>().map(|origin| origin.to_string());
        assert_eq!(text("https://app.example").as_deref(), Ok("https://app.example:443"));
        assert_eq!(text("http://LOCALHOST:3000").as_deref(), Ok("http://localhost:3000"));
        assert_eq!(text("http://[::1]:80").as_deref(), Ok("http://[::1]:80"));
        for wrong in [
            "",
            "null",
            "*",
            "app.example",
            "https://",
            "https://app.example/",
            "https://app.example/x",
            "https://a@app.example",
            "https://app.example?x",
            "ftp://app.example",
            "https://app.example:*",
            "https://*.example",
            "file:///x",
            "https://app.example:99999",
            "https:\\\\app.example",
        ] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_very_origin_is_allowed() {
        let origins = Origins::new(vec!["https://app.example".parse().unwrap()]);
        let is_allowed = |value: &str| origins.allowed(&headers(&[("origin", value)])).is_some();
        assert!(is_allowed("https://app.example") && is_allowed("https://app.example:443"));
        for other in [
            "https://app.example:8443",
            "http://app.example",
            "https://app.example.evil",
            "https://x.app.example",
            "null",
        ] {
            assert!(!is_allowed(other), "{other}");
        }
        assert!(origins.allowed(&HeaderMap::new()).is_none());
        let mut twice = headers(&[("origin", "https://app.example")]);
        twice.append(header::ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert!(origins.allowed(&twice).is_none());
    }

    #[test]
    fn a_browser_is_answered_for_an_allowed_page_alone() {
        let origins = Origins::new(vec!["https://app.example".parse().unwrap()]);
        let asks = |origin: &str, list: &str| {
            let asks = headers(&[
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", list),
            ]);
            origins.preflight(&Method::OPTIONS, &asks)
        };
        let answer = asks("https://app.example", "authorization, mcp-method").unwrap();
        assert_eq!(answer[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
        assert_eq!(answer[header::ACCESS_CONTROL_ALLOW_HEADERS], "authorization, mcp-method");
        assert!(asks("https://evil.example", "authorization").is_none());
        let long = asks("https://app.example", &"x".repeat(MAX_REQUESTED + 1)).unwrap();
        assert!(!long.contains_key(header::ACCESS_CONTROL_ALLOW_HEADERS));
        assert!(origins.preflight(&Method::OPTIONS, &headers(&[("origin", "https://app.example")])).is_none());
    }
}
