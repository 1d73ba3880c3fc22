//! Addresses of OAuth: those that need TLS, and the documents that describe issuers and protected servers.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::http::is_loopback;

/// Path of the document about a protected server (RFC 9728).
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
/// Path of the document about an issuer (RFC 8414).
const SERVER: &str = "/.well-known/oauth-authorization-server";
/// Path of the document about an issuer (OpenID Connect Discovery).
const OPENID: &str = "/.well-known/openid-configuration";
/// Maximum length of an address in bytes.
const MAX_LEN: usize = 2048;
/// Form of an address, for errors.
const EXPECTED: &str = "expected an address such as `https://tools.example.com/mcp`, without a user name, `?` and `#`; \
                        `http://` is for a loopback address alone";

/// Address over TLS, or over plain HTTP on this machine, without credentials, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecureUrl {
    /// Address as it was written: identifiers of OAuth are compared as texts.
    text: String,
    url: Url,
}

impl SecureUrl {
    /// Returns the address as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parsed address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns `true` for an address of this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }
}

impl FromStr for SecureUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_LEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(EXPECTED);
        }
        let url = Url::parse(text).map_err(|_| EXPECTED)?;
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => is_loopback(&url),
            _ => false,
        };
        let is_plain = url.username().is_empty() && url.password().is_none() && !text.contains(['?', '#', '"', '\\']);
        if is_secure && is_plain { Ok(Self { text: text.to_owned(), url }) } else { Err(EXPECTED) }
    }
}

impl fmt::Display for SecureUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Lists the addresses at which a protected server's document may be, in their order.
pub fn resource_documents(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places = vec![at(server, &format!("{RESOURCE}{path}")), at(server, RESOURCE)];
    places.dedup();
    places
}

/// Lists the addresses at which an issuer's document may be, in their order.
pub fn issuer_documents(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![at(issuer, &format!("{SERVER}{path}")), at(issuer, &format!("{OPENID}{path}"))];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{OPENID}")));
    }
    places
}

/// Returns the address with another path.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_path(path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_over_tls_or_of_this_machine_and_has_nothing_else() {
        for text in ["https://a.example", "https://a.example:8443/x/mcp", "http://127.0.0.1:1/", "http://localhost:1/a"]
        {
            assert_eq!(text.parse::<SecureUrl>().as_ref().map(SecureUrl::as_str), Ok(text));
        }
        let long = format!("https://a.example/{}", "a".repeat(MAX_LEN));
        for text in [
            "",
            "a.example",
            "http://a.example",
            "http://localhost.example.com/",
            "ftp://127.0.0.1/",
            "https://ada@a.example/",
            "https://a.example/?x",
            "https://a.example/#x",
            "https://a.example/\"",
            "https://a.example/\n",
            "https:\\\\a.example",
            &long,
        ] {
            assert!(text.parse::<SecureUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn documents_are_at_the_paths_of_the_specifications() {
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(
            texts(resource_documents(&url("https://a.example/x/mcp?y=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/x/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(resource_documents(&url("https://a.example/")).len(), 1);
        assert_eq!(
            texts(issuer_documents(&url("https://a.example/team/"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/team",
                "https://a.example/.well-known/openid-configuration/team",
                "https://a.example/team/.well-known/openid-configuration"
            ]
        );
        assert_eq!(issuer_documents(&url("https://a.example")).len(), 2);
    }
}
