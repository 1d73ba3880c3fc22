//! Docker's configuration file, which is also Podman's: `auths`, `credHelpers` and `credsStore`.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::{CredentialError, json_place};
use crate::files::{self, Bounded};
use crate::limits::MAX_CREDENTIAL_FILE_BYTES;
use crate::reference::{Registry, Repository};
use crate::secret::{Credential, Secret, basic_pair};

/// Content of a credential file that matters here.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DockerFile {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
    #[serde(skip)]
    path: std::path::PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: Option<Hidden>,
    username: Option<String>,
    password: Option<Hidden>,
    identitytoken: Option<Hidden>,
    registrytoken: Option<Hidden>,
}

/// Secret that is read from a file.
struct Hidden(Secret);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}

/// Content of a new entry.
pub(super) enum Source {
    /// The credential itself.
    File(Credential),
    /// A helper has the credential; the entry is an empty object.
    Helper,
}

impl DockerFile {
    /// Reads a file. `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, CredentialError> {
        let Some(content) = content(path)? else { return Ok(None) };
        // An array would be read as the fields in order.
        if content.trim_ascii_start().first() != Some(&b'{') {
            return Err(malformed(path, "the file is not a JSON object"));
        }
        let mut file: Self = serde_json::from_slice(&content).map_err(|error| malformed(path, &json_place(&error)))?;
        file.path = path.to_owned();
        Ok(Some(file))
    }

    /// Returns the name of the helper that is responsible for a registry.
    pub(super) fn helper_for(&self, registry: &Registry) -> Result<Option<String>, CredentialError> {
        let own = self.cred_helpers.iter().find(|(key, _)| is_registry(key, registry)).map(|(_, name)| name);
        let name = own.or(self.creds_store.as_ref()).filter(|name| !name.is_empty());
        name.map(|name| super::helper::checked_name(name).map(str::to_owned)).transpose()
    }

    /// Takes the credential of the most specific entry: the repository, its parents, the registry.
    pub(super) fn take_entry(&mut self, repository: &Repository) -> Result<Option<Credential>, CredentialError> {
        let mut path = Some(repository.path());
        while let Some(prefix) = path {
            let wanted = format!("{}/{prefix}", repository.registry());
            if let Some(entry) = self.auths.remove(&wanted)
                && let Some(credential) = self.credential(entry)?
            {
                return Ok(Some(credential));
            }
            path = prefix.rsplit_once('/').map(|(parent, _)| parent);
        }
        let keys: Vec<String> =
            self.auths.keys().filter(|key| is_registry(key, repository.registry())).cloned().collect();
        for key in keys {
            if let Some(entry) = self.auths.remove(&key)
                && let Some(credential) = self.credential(entry)?
            {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }

    fn credential(&self, entry: Entry) -> Result<Option<Credential>, CredentialError> {
        let present =
            |secret: Option<Hidden>| secret.map(|hidden| hidden.0).filter(|secret| !secret.expose().is_empty());
        if let Some(token) = present(entry.identitytoken) {
            return Credential::identity_token(token).map(Some);
        }
        if let Some(token) = present(entry.registrytoken) {
            return Credential::registry_token(token).map(Some);
        }
        if let Some(pair) = present(entry.auth) {
            let invalid = || malformed(&self.path, "an `auth` is not the base64 form of `user:password`");
            let pair = Zeroizing::new(STANDARD.decode(pair.expose().trim()).map_err(|_| invalid())?);
            let pair = std::str::from_utf8(&pair).map_err(|_| invalid())?;
            let (username, password) = pair.split_once(':').ok_or_else(invalid)?;
            // Old versions of Docker pad the password with zero bytes.
            return Credential::password(username, Secret::new(password.trim_end_matches('\0'))).map(Some);
        }
        match (entry.username.filter(|name| !name.is_empty()), present(entry.password)) {
            (Some(username), Some(password)) => Credential::password(username, password).map(Some),
            _ => Ok(None),
        }
    }
}

/// Sets the entry of `server` and keeps all other content.
pub(super) fn insert(path: &Path, server: &str, source: &Source) -> Result<(), CredentialError> {
    let mut root = Document::read(path)?;
    let entry = match source {
        Source::Helper => Map::new(),
        Source::File(Credential::Password { username, password }) => {
            Map::from_iter([("auth".to_owned(), basic_pair(username, password).expose().into())])
        }
        Source::File(Credential::IdentityToken(token)) => {
            Map::from_iter([("identitytoken".to_owned(), token.expose().into())])
        }
        Source::File(Credential::RegistryToken(token)) => {
            Map::from_iter([("registrytoken".to_owned(), token.expose().into())])
        }
    };
    if let Some(mut replaced) = root.auths(path)?.insert(server.to_owned(), Value::Object(entry)) {
        wipe(&mut replaced);
    }
    root.write(path)
}

/// Removes the entries of a registry and keeps all other content. Returns `true` if there was one.
pub(super) fn remove(path: &Path, registry: &Registry) -> Result<bool, CredentialError> {
    let mut root = Document::read(path)?;
    let auths = root.auths(path)?;
    let keys: Vec<String> = auths.keys().filter(|key| is_registry(key, registry)).cloned().collect();
    for key in &keys {
        if let Some(mut removed) = auths.shift_remove(key) {
            wipe(&mut removed);
        }
    }
    if !keys.is_empty() {
        root.write(path)?;
    }
    Ok(!keys.is_empty())
}

/// Whole file, for a change that preserves unknown fields. Its texts are overwritten on drop.
struct Document(Value);

impl Document {
    fn read(path: &Path) -> Result<Self, CredentialError> {
        let Some(content) = content(path)? else { return Ok(Self(Value::Object(Map::new()))) };
        serde_json::from_slice(&content).map(Self).map_err(|error| malformed(path, &json_place(&error)))
    }

    fn auths(&mut self, path: &Path) -> Result<&mut Map<String, Value>, CredentialError> {
        let root = self.0.as_object_mut().ok_or_else(|| malformed(path, "the file is not a JSON object"))?;
        let auths = root.entry("auths").or_insert_with(|| Value::Object(Map::new()));
        auths.as_object_mut().ok_or_else(|| malformed(path, "the field `auths` is not an object"))
    }

    fn write(&self, path: &Path) -> Result<(), CredentialError> {
        let limit = MAX_CREDENTIAL_FILE_BYTES;
        // The full capacity at once: growth would leave copies of the content behind.
        let mut text = Zeroizing::new(Vec::with_capacity(2 * limit as usize));
        let format = serde_json::ser::PrettyFormatter::with_indent(b"\t");
        let mut serializer = serde_json::Serializer::with_formatter(&mut *text, format);
        serde::Serialize::serialize(&self.0, &mut serializer).map_err(|error| malformed(path, &json_place(&error)))?;
        if text.len() as u64 > limit {
            return Err(CredentialError::TooLarge { path: path.to_owned(), limit });
        }
        files::replace_private(path, &text).map_err(|source| file_error("write", path, source))
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites every text. The depth is bounded by the parser.
fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(values) => values.iter_mut().for_each(wipe),
        Value::Object(fields) => fields.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `true` if a key of the file names the registry as a whole: `host`, `https://host` or `https://host/v1/`.
fn is_registry(key: &str, registry: &Registry) -> bool {
    let url = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let host = url.map_or(key, |url| url.split_once('/').map_or(url, |(host, _)| host));
    let path = url.and_then(|url| url.split_once('/')).map_or("", |(_, path)| path.trim_end_matches('/'));
    let same = host.parse::<Registry>().is_ok_and(|found| found.api_authority() == registry.api_authority());
    same && matches!(path, "" | "v1" | "v2")
}

fn content(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, CredentialError> {
    let limit = MAX_CREDENTIAL_FILE_BYTES;
    match files::read_bounded(path, limit).map_err(|source| file_error("read", path, source))? {
        Bounded::Content(content) => Ok(Some(content)),
        Bounded::Missing => Ok(None),
        Bounded::NotAFile => Err(CredentialError::NotAFile { path: path.to_owned() }),
        Bounded::TooLarge => Err(CredentialError::TooLarge { path: path.to_owned(), limit }),
    }
}

fn malformed(path: &Path, reason: &str) -> CredentialError {
    CredentialError::Malformed { path: path.to_owned(), reason: reason.to_owned() }
}

fn file_error(action: &'static str, path: &Path, source: std::io::Error) -> CredentialError {
    CredentialError::File { action, path: path.to_owned(), source }
}
