//! Secrets and credentials. Their memory is overwritten when they are dropped, and no formatter shows them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use zeroize::{Zeroize, Zeroizing};

use crate::error::CredentialError;
use crate::limits::MAX_CREDENTIAL_BYTES;

/// Text that is overwritten on drop and never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes ownership of `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. The name marks each place that handles the secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Proof of identity for one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// User name and password, or an access token instead of the password.
    Password {
        /// User name.
        username: String,
        /// Password.
        password: Secret,
    },
    /// Refresh token (Docker's `identitytoken`), exchanged for an access token at the token server.
    IdentityToken(Secret),
    /// Access token (Docker's `registrytoken`), sent to the registry as it is.
    RegistryToken(Secret),
}

impl Credential {
    /// Creates a credential from a user name and a password.
    ///
    /// # Errors
    ///
    /// If the user name is empty or has a colon, if one of the two is longer than [`MAX_CREDENTIAL_BYTES`], or if one
    /// of the two has control characters.
    pub fn password(username: impl Into<String>, password: Secret) -> Result<Self, CredentialError> {
        let username = username.into();
        let printable = |text: &str| text.len() <= MAX_CREDENTIAL_BYTES && !text.contains(char::is_control);
        if username.is_empty() || username.contains(':') || !printable(&username) || !printable(password.expose()) {
            return Err(CredentialError::NotUsable);
        }
        Ok(Self::Password { username, password })
    }

    /// Creates a credential from a refresh token.
    ///
    /// # Errors
    ///
    /// If the token is empty, longer than [`MAX_CREDENTIAL_BYTES`] or not printable ASCII.
    pub fn identity_token(token: Secret) -> Result<Self, CredentialError> {
        checked_token(token).map(Self::IdentityToken)
    }

    /// Creates a credential from an access token.
    ///
    /// # Errors
    ///
    /// If the token is empty, longer than [`MAX_CREDENTIAL_BYTES`] or not printable ASCII.
    pub fn registry_token(token: Secret) -> Result<Self, CredentialError> {
        checked_token(token).map(Self::RegistryToken)
    }
}

fn checked_token(token: Secret) -> Result<Secret, CredentialError> {
    let text = token.expose();
    let valid = !text.is_empty() && text.len() <= MAX_CREDENTIAL_BYTES && text.bytes().all(|b| b.is_ascii_graphic());
    if valid { Ok(token) } else { Err(CredentialError::NotUsable) }
}

/// Returns the base64 form of `username:password`, as in a `Basic` header and in Docker's configuration.
pub(crate) fn basic_pair(username: &str, password: &Secret) -> Secret {
    let pair = Zeroizing::new(format!("{username}:{}", password.expose()));
    Secret::new(STANDARD.encode(pair.as_bytes()))
}

/// Returns an `Authorization` header that is hidden from formatters. `None` if the value does not fit into a header.
pub(crate) fn authorization(scheme: &str, value: &Secret) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("{scheme} {}", value.expose()));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary-7f3a";

    #[test]
    fn no_formatter_shows_a_secret() {
        let credential = Credential::password("ada", Secret::new(CANARY)).unwrap();
        let header = authorization("Bearer", &Secret::new(CANARY)).unwrap();
        for text in [
            format!("{credential:?}"),
            format!("{:?}", Credential::IdentityToken(Secret::new(CANARY))),
            format!("{:#?}", Credential::RegistryToken(Secret::new(CANARY))),
            format!("{header:?}"),
        ] {
            assert!(!text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn credentials_that_could_forge_a_header_are_refused() {
        let long = "x".repeat(MAX_CREDENTIAL_BYTES + 1);
        for (username, password) in [("", "p"), ("a:b", "p"), ("a", "p\r\nHost: evil"), ("a\n", "p"), ("a", &long)] {
            assert!(Credential::password(username, Secret::new(password)).is_err());
        }
        for token in ["", "a b", "a\r\n", "ä", &long] {
            assert!(Credential::identity_token(Secret::new(token)).is_err());
            assert!(Credential::registry_token(Secret::new(token)).is_err());
        }
    }
}
