//! Address of a NATS server, without its password in any text.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// Port of NATS.
const DEFAULT_PORT: u16 = 4222;
/// Maximum length of an address in bytes.
const MAX_LEN: usize = 2048;
/// Form of an address, for errors.
const EXPECTED: &str =
    "expected an address such as `nats://nats.example.com:4222` or `tls://USER:PASSWORD@nats.example.com`";

/// Address of a NATS server. Its texts leave the user and the password out.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAddress {
    host: String,
    port: u16,
    is_encrypted: bool,
    user: Option<(String, String)>,
}

impl NatsAddress {
    /// Returns the address in the form that the client library takes, without user and password.
    pub(crate) fn server(&self) -> String {
        self.to_string()
    }

    /// `true` if the connection must use TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns the user and the password; a token is a user with an empty password.
    pub(crate) fn user(&self) -> Option<&(String, String)> {
        self.user.as_ref()
    }
}

impl FromStr for NatsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{why}; {EXPECTED}");
        if text.len() > MAX_LEN {
            return Err(wrong(&format!("the address has more than {MAX_LEN} bytes")));
        }
        let url = Url::parse(text).map_err(|error| wrong(&format!("no address: {error}")))?;
        let is_encrypted = match url.scheme() {
            "nats" => false,
            "tls" => true,
            other => return Err(wrong(&format!("unknown scheme `{other}`"))),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?.to_owned();
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a path, a query or a fragment"));
        }
        let plain = |text: &str| decoded(text).ok_or_else(|| wrong("the user or the password is not UTF-8"));
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => Some((plain(user)?, plain(password.unwrap_or_default())?)),
        };
        Ok(Self { host, port: url.port().unwrap_or(DEFAULT_PORT), is_encrypted, user })
    }
}

/// Decodes `%XX` in a part of an address; `None` if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "tls" } else { "nats" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_never_shows_its_password() {
        let address: NatsAddress = "nats://ada:s%40crt@nats.example.com".parse().unwrap();
        assert_eq!(address.user(), Some(&("ada".to_owned(), "s@crt".to_owned())));
        for text in [address.to_string(), format!("{address:?}"), address.server()] {
            assert_eq!(text, "nats://nats.example.com:4222");
        }
        let address: NatsAddress = "tls://[::1]:1".parse().unwrap();
        assert_eq!(
            (address.to_string().as_str(), address.user(), address.is_encrypted()),
            ("tls://[::1]:1", None, true)
        );
    }

    #[test]
    fn a_wrong_address_is_refused_without_its_password() {
        let long = format!("nats://{}", "a".repeat(MAX_LEN));
        for text in ["", "host:4222", "http://u:hush@h", "nats://", "nats://u:hush@h/path", "nats://h?x=1", &long] {
            let error = text.parse::<NatsAddress>().unwrap_err();
            assert!(!error.contains("hush") && error.contains(EXPECTED), "{error}");
        }
    }
}
