//! Tokens of clients over HTTP: several, named and revocable. Only the digest of a token is stored, and a running server
//! notices a change.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::ListFile;
use toolcrib::source::digest;
use toolcrib_base::file_version::FileVersion;
use toolcrib_base::folders::{no_home, state_folder};
use toolcrib_base::render::{self, Advice};

use super::access::{Identity, TokenScope};

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of tokens.
pub(super) const MAX_TOKENS: usize = 1000;
/// Maximum length of a name.
const MAX_NAME_LEN: usize = 64;
/// Token prefix, which lets secret scanners find tokens.
pub(super) const PREFIX: &str = "crib_";

/// Stored token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Name of the client.
    pub name: String,
    /// Digest of the token, as `sha256:HEX`.
    pub(crate) digest: String,
    /// Time of the creation.
    pub created: Timestamp,
    /// Permissions and rules of the client, in addition to those for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Parts of the server that the client may use.
    #[serde(default = "calls")]
    pub scopes: Vec<TokenScope>,
    /// End of the token: it is refused then and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// Rights of a new token.
#[derive(Debug, Clone, Default)]
pub struct TokenRights {
    /// Permissions and rules of the client, in addition to those for all.
    pub options: Vec<String>,
    /// Parts of the server that the client may use; calls alone if there are none.
    pub scopes: Vec<TokenScope>,
    /// Time until the token ends.
    pub lifetime: Option<Duration>,
}

/// New token, which is shown once, with its digest.
#[derive(Debug)]
pub(super) struct NewToken {
    pub(super) token: String,
    /// Digest of the token, as `sha256:HEX`.
    pub(super) digest: String,
}

impl TokenRecord {
    /// Creates a token with its record. The token itself is in neither.
    ///
    /// # Errors
    ///
    /// The name is invalid.
    pub(super) fn create(name: &str, rights: TokenRights) -> anyhow::Result<(String, Self)> {
        let TokenRights { options, mut scopes, lifetime } = rights;
        check_name(name).map_err(|hint| Advice::new(format!("`{name}` is not a token name"), hint))?;
        let (NewToken { token, digest }, created) = (NewToken::random(), Timestamp::now());
        let expires = lifetime.map(|lifetime| created.checked_add(lifetime)).transpose()?;
        scopes.dedup();
        if scopes.is_empty() {
            scopes = calls();
        }
        Ok((token, Self { name: name.to_owned(), digest, created, options, scopes, expires }))
    }

    /// Returns the client with the token, by the token's digest.
    pub(super) fn client(self) -> (String, Identity) {
        let client = Identity {
            name: self.name.into(),
            options: self.options.into(),
            has_token: true,
            holder: self.digest.as_str().into(),
            scopes: self.scopes.into(),
            expires: self.expires,
        };
        (self.digest, client)
    }
}

/// Error for a name that another token has.
pub(super) fn name_taken(name: &str) -> Advice {
    let hint = format!("choose another name, or revoke it with `toolcrib mcp token revoke {name}`");
    Advice::new(format!("a token `{name}` exists"), hint)
}

/// Error of one token more than the maximum.
pub(super) fn too_many() -> Advice {
    Advice::new(format!("there are already {MAX_TOKENS} tokens, the maximum"), "revoke unused tokens")
}

impl NewToken {
    /// Creates a token.
    pub(super) fn random() -> Self {
        let token = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()));
        Self { digest: digest(token.as_bytes()), token }
    }
}

/// Checks the name of a token.
///
/// # Errors
///
/// The form of a name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_valid = (1..=MAX_NAME_LEN).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let form = || {
        format!("a name has 1 to {MAX_NAME_LEN} letters, digits, `-`, `_` or `.`, and starts with a letter or digit")
    };
    if is_valid { Ok(()) } else { Err(form()) }
}

/// Scopes of a token that states none.
fn calls() -> Vec<TokenScope> {
    vec![TokenScope::Calls]
}

/// The tokens cannot be read.
#[derive(Debug)]
pub(super) struct UnreadTokens;

/// Clients by their tokens' digests, with the version of the file that was read.
type ReadTokens = (FileVersion, HashMap<String, Identity>);

/// File of tokens.
#[derive(Debug, Clone)]
pub struct Tokens {
    file: ListFile<TokenRecord>,
    /// Tokens as of a file change.
    read: Arc<Mutex<Option<ReadTokens>>>,
    /// Version of the file that could not be read.
    unreadable: Arc<Mutex<Option<FileVersion>>>,
}

impl Tokens {
    /// Returns the tokens in the user's state folder.
    ///
    /// # Errors
    ///
    /// The user has no home directory.
    pub fn of_user() -> anyhow::Result<Self> {
        state_folder("tokens.json").map(Self::file).ok_or_else(no_home)
    }

    /// Names the file without opening it.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { file: ListFile::new(path, "tokens", MAX_BYTES), read: Arc::default(), unreadable: Arc::default() }
    }

    /// Lists the tokens, oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed, or can be written by other users.
    pub fn list(&self) -> anyhow::Result<Vec<TokenRecord>> {
        self.file.read().with_context(|| self.unusable())
    }

    /// Creates a token, and returns it. It is shown once and not stored.
    ///
    /// # Errors
    ///
    /// The name is invalid or taken, there are too many tokens, or the file cannot be written.
    pub fn create(&self, name: &str, rights: TokenRights) -> anyhow::Result<String> {
        let (token, record) = TokenRecord::create(name, rights)?;
        let change = |tokens: &mut Vec<TokenRecord>| {
            if tokens.iter().any(|other| other.name == record.name) {
                return Err(name_taken(name));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(too_many());
            }
            tokens.push(record);
            Ok(())
        };
        self.file.change(change).with_context(|| self.unusable())??;
        Ok(token)
    }

    /// Revokes a token; returns `false` if there is none of the name.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn revoke(&self, name: &str) -> anyhow::Result<bool> {
        let change = |tokens: &mut Vec<TokenRecord>| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            tokens.len() < before
        };
        self.file.change(change).with_context(|| self.unusable())
    }

    /// Returns the client with a token; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The file cannot be read: no client is accepted, with a warning.
    pub(super) fn client(&self, token: &str) -> Result<Option<Identity>, UnreadTokens> {
        // A stored digest says nothing about the token, so the time of its comparison says nothing either.
        let digest = digest(token.as_bytes());
        let Ok(file) = self.file.path().metadata() else { return Ok(None) };
        let version = FileVersion::of(&file);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref().is_none_or(|(of, _)| *of != version) {
            let clients = self.file.read().inspect_err(|error| self.warn(version, error)).map_err(|_| UnreadTokens)?;
            *read = Some((version, clients.into_iter().map(TokenRecord::client).collect()));
        }
        Ok(read.as_ref().and_then(|(_, clients)| clients.get(&digest).cloned()))
    }

    /// Warns once for each version of the file that no client is accepted.
    fn warn(&self, version: FileVersion, error: &impl std::fmt::Display) {
        let warned = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).replace(version);
        if warned != Some(version) {
            let error = render::one_line(&error.to_string());
            render::warning(&format!("{}, so no client is accepted: {error}", self.unusable()));
        }
    }

    fn unusable(&self) -> String {
        format!("cannot use the tokens in `{}`", self.file.path().display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_until_it_is_revoked_and_stored_as_a_digest_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let tokens = Tokens::file(path.clone());
        let name_of = |token: &str| tokens.client(token).unwrap().map(|client| client.name.to_string());
        assert_eq!(name_of("crib_x"), None);
        let options = vec!["--deny-net".to_owned()];
        let rights = TokenRights { options: options.clone(), ..TokenRights::default() };
        let (ada, bob) = (tokens.create("ada", rights).unwrap(), tokens.create("bob", TokenRights::default()).unwrap());
        assert_eq!(tokens.client(&ada).unwrap().unwrap().options[..], options);
        assert_ne!(ada, bob);
        assert_eq!((name_of(&ada).as_deref(), name_of(&bob).as_deref()), (Some("ada"), Some("bob")));
        assert_eq!(name_of(&ada[..ada.len() - 1]), None);
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&ada[PREFIX.len()..]));
        // Another process revokes it.
        assert!(Tokens::file(path.clone()).revoke("ada").unwrap());
        assert_eq!((name_of(&ada), name_of(&bob).as_deref()), (None, Some("bob")));
        assert!(!tokens.revoke("ada").unwrap());
    }

    #[test]
    fn names_and_numbers_of_tokens_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::file(folder.path().join("tokens.json"));
        for name in ["", "a b", "a/b", "ä", ".", "..", "-", "_a", &"a".repeat(MAX_NAME_LEN + 1)] {
            assert!(tokens.create(name, TokenRights::default()).is_err(), "{name}");
        }
        tokens.create("a", TokenRights::default()).unwrap();
        assert_eq!(tokens.create("a", TokenRights::default()).unwrap_err().to_string(), "a token `a` exists");
        let record = tokens.list().unwrap().remove(0);
        tokens.file.change(|all| all.extend((1..MAX_TOKENS).map(|_| record.clone()))).unwrap();
        assert!(tokens.create("b", TokenRights::default()).unwrap_err().to_string().contains("the maximum"));
    }
}
