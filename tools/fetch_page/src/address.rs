//! Addresses of pages, in the parts that a request needs.

use std::fmt;

use fluent_uri::{Uri, UriRef};
use toolcrib_guest::{Error, Result};

/// HTTP or HTTPS address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Address {
    whole: String,
    pub(crate) https: bool,
    pub(crate) authority: String,
    /// Path with the query.
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| Error::invalid(format!("`{text}` is not the address of a page: {why}"));
        if !text.contains("://") {
            return Err(wrong("`https://` is missing at its start"));
        }
        let uri = Uri::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let https = match uri.scheme().as_str().to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            other => return Err(wrong(&format!("its scheme is `{other}`, neither `https` nor `http`"))),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.has_userinfo() || authority.host().is_empty() {
            return Err(wrong("it names a user, or no host"));
        }
        let path = if uri.path().is_empty() { "/" } else { uri.path().as_str() };
        let query = uri.query().map(|query| format!("?{}", query.as_str())).unwrap_or_default();
        let whole = uri.strip_fragment().as_str().to_owned();
        Ok(Self { whole, https, authority: authority.as_str().to_owned(), path: format!("{path}{query}") })
    }

    /// Resolves the target of a redirect from this page.
    pub(crate) fn join(&self, location: &str) -> Result<Self> {
        let wrong = || Error::unavailable(format!("`{self}` redirects to `{location}`, which is no address"));
        let base = Uri::parse(self.whole.as_str()).map_err(|_| wrong())?;
        let joined = UriRef::parse(location).ok().and_then(|location| location.resolve_against(&base).ok());
        let next = Self::parse(joined.ok_or_else(wrong)?.as_str()).map_err(|_| wrong())?;
        match self.https && !next.https {
            true => Err(Error::unavailable(format!("`{self}` redirects to `{next}`, out of TLS"))),
            false => Ok(next),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_told_what_is_missing() {
        for text in ["example.com", "example.com/a?b=c", "localhost:8080/x"] {
            let error = Address::parse(text).expect_err(text).to_string();
            assert_eq!(error, format!("`{text}` is not the address of a page: `https://` is missing at its start"));
        }
        assert!(Address::parse("https://example.com").is_ok());
    }
}
