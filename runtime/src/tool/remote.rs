//! Tool on a remote server: its address, and the definition that was pinned when a person agreed to it. Nothing here speaks to
//! the server.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::destination::Destination;
use super::secret::SecretHost;

/// Maximum length of an address in bytes.
const MAX_ADDRESS: usize = 2048;

/// Tool on a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remote {
    /// Server of the tool.
    pub server: Arc<RemoteServer>,
    /// Name of the tool on its server.
    pub name: String,
    /// Definition that the server stated when it was pinned.
    pub pinned: Value,
    /// Digest over the server and the pinned definition, as `sha256:HEX`.
    pub digest: String,
}

impl Remote {
    /// Creates a tool with its digest.
    pub(crate) fn new(server: &Arc<RemoteServer>, name: String, pinned: Value) -> Self {
        // An approval outlasts another revision of the protocol, which changes nothing that the tool does.
        let RemoteServer { address, revision: _, secret } = &**server;
        let text = json!([address.as_str(), secret, name, pinned]).to_string();
        let digest = toolcrib_component::digest(text.as_bytes());
        Self { server: server.clone(), name, pinned, digest }
    }
}

/// Remote server with pinned tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteServer {
    /// Address of the server.
    pub address: RemoteAddress,
    /// Revision of the protocol that the server spoke when it was pinned.
    pub revision: String,
    /// Name of the secret that requests carry as a bearer token.
    pub secret: Option<String>,
}

/// Address of a remote server: `https`, or `http` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    text: String,
    host: SecretHost,
    destination: Destination,
}

/// Error of parsing a [`RemoteAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the address of a server: {reason}")]
pub struct RemoteAddressError {
    text: String,
    reason: String,
}

impl RemoteAddress {
    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host that gets the requests.
    pub fn host(&self) -> &SecretHost {
        &self.host
    }

    /// Returns the destination of the requests.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}

impl FromStr for RemoteAddress {
    type Err = RemoteAddressError;

    /// Parses an address. Its host must have the normal form except for case.
    fn from_str(text: &str) -> Result<Self, RemoteAddressError> {
        let shown = toolcrib_foundation::text::shown(text);
        let refuse = |reason: &str| RemoteAddressError { text: shown.clone(), reason: reason.to_owned() };
        if text.len() > MAX_ADDRESS {
            return Err(refuse("it is longer than 2048 bytes"));
        }
        let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))
        else {
            return Err(refuse("it begins with neither `https://` nor `http://`"));
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains('#') {
            return Err(refuse("it has a `#`"));
        }
        if authority.contains('@') {
            return Err(refuse("it has a user name or a password; store a token as a secret instead"));
        }
        let host: SecretHost = format!("{scheme}://{authority}")
            .parse()
            .map_err(|error: super::SecretHostError| refuse(&error.reason().to_string()))?;
        let path = match path {
            "" => "/".to_owned(),
            path if path.starts_with('?') => format!("/{path}"),
            path => path.to_owned(),
        };
        if path.parse::<http::uri::PathAndQuery>().is_err() || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse("its path has a character that must be written as `%` and two digits"));
        }
        let destination = host.destination().map_err(|error| refuse(&error.to_string()))?;
        Ok(Self { text: format!("{}{path}", host.origin()), host, destination })
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_form() {
        for (text, form, destination) in [
            ("https://A.example/mcp", "https://a.example/mcp", "https://a.example:443"),
            ("https://a.example", "https://a.example/", "https://a.example:443"),
            ("https://a.example:8443/x?y=1", "https://a.example:8443/x?y=1", "https://a.example:8443"),
            ("https://a.example?y=1", "https://a.example/?y=1", "https://a.example:443"),
            ("http://127.0.0.1:3001/mcp", "http://127.0.0.1:3001/mcp", "http://127.0.0.1:3001"),
            ("http://[::1]/mcp", "http://[::1]/mcp", "http://[::1]:80"),
            ("http://localhost:3001/mcp", "http://localhost:3001/mcp", "http://localhost:3001"),
        ] {
            let address: RemoteAddress = text.parse().unwrap();
            assert_eq!((address.as_str(), address.destination().to_string().as_str()), (form, destination));
            assert_eq!(form.parse::<RemoteAddress>().unwrap(), address);
        }
    }

    #[test]
    fn an_address_that_can_be_read_in_two_ways_is_none() {
        for (text, reason) in [
            ("a.example/mcp", "begins with neither"),
            ("ftp://a.example", "begins with neither"),
            ("http://a.example/mcp", "without TLS"),
            ("http://localhost.example/mcp", "without TLS"),
            ("http://192.168.1.2/mcp", "without TLS"),
            ("https://user:word@a.example/", "user name"),
            ("https://a.example\\@b.example/", "user name"),
            ("https://a.example/#x", "`#`"),
            ("https://a.example./", "dot"),
            ("https:///x", "missing"),
            ("https://a.example:0/", "port"),
            ("https://a.example/a b", "character"),
            ("https://a.example/ä", "character"),
            ("https://a.example/\r\nX: y", "character"),
        ] {
            let error = text.parse::<RemoteAddress>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
        assert!(format!("https://a.example/{}", "x".repeat(2048)).parse::<RemoteAddress>().is_err());
    }
}
