//! Credential helpers: programs `docker-credential-NAME` that keep credentials in the system's store.
//!
//! A helper runs with the variables that the caller passed, within a time, with a bounded output. Its error output is
//! dropped, and its output appears in no error.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use zeroize::{Zeroize, Zeroizing};

use crate::error::CredentialError;
use crate::limits::{MAX_ANSWER_BYTES, MAX_HELPER_NAME_BYTES, MAX_HELPER_TIME};
use crate::secret::{Credential, Secret};

/// User name that marks a helper's refresh token.
const TOKEN_USER: &str = "<token>";

/// Search path and variables of credential helpers.
#[derive(Clone)]
pub struct HelperEnvironment {
    folders: Vec<PathBuf>,
    variables: Vec<(OsString, OsString)>,
    pub(super) time: Duration,
}

impl HelperEnvironment {
    /// Creates an environment from the value of a `PATH` variable and the variables that helpers receive.
    ///
    /// Relative and empty folders of the search path are ignored.
    pub fn new(search_path: OsString, variables: Vec<(OsString, OsString)>) -> Self {
        let folders = std::env::split_paths(&search_path).filter(|folder| folder.is_absolute()).collect();
        Self { folders, variables, time: MAX_HELPER_TIME }
    }
}

impl Default for HelperEnvironment {
    fn default() -> Self {
        Self::new(OsString::new(), Vec::new())
    }
}

impl std::fmt::Debug for HelperEnvironment {
    /// Shows no variable, since its value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelperEnvironment").field("folders", &self.folders).field("time", &self.time).finish()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(rename = "ServerURL")]
    server: &'a str,
    #[serde(rename = "Username")]
    username: &'a str,
    #[serde(rename = "Secret")]
    secret: &'a str,
}

/// Returns the name if it is one: a name from a file must not become a path or an option.
pub(super) fn checked_name(name: &str) -> Result<&str, CredentialError> {
    let valid = (1..=MAX_HELPER_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if valid { Ok(name) } else { Err(CredentialError::HelperName { found: crate::text::excerpt(name) }) }
}

/// Asks a helper for the credential of a server. `None` if it has none.
pub(super) async fn get(
    environment: &HelperEnvironment,
    name: &str,
    server: &str,
) -> Result<Option<Credential>, CredentialError> {
    let failed = |reason| CredentialError::Helper { name: name.to_owned(), reason };
    let (success, output) = run(environment, name, "get", server.as_bytes()).await?;
    if !success {
        // The message is part of the protocol: every helper prints it to its standard output.
        let message = String::from_utf8_lossy(&output);
        if message.contains("credentials not found") || message.contains("no credentials") {
            return Ok(None);
        }
        return Err(failed("it exited with an error"));
    }
    let mut answer: Answer =
        serde_json::from_slice(&output).map_err(|_| failed("its answer is not JSON with `Username` and `Secret`"))?;
    let secret = Secret::new(std::mem::take(&mut answer.secret));
    if secret.expose().is_empty() {
        return Ok(None);
    }
    let username = std::mem::take(&mut answer.username);
    if username == TOKEN_USER { Credential::identity_token(secret) } else { Credential::password(username, secret) }
        .map(Some)
}

/// Hands a credential to a helper.
pub(super) async fn store(
    environment: &HelperEnvironment,
    name: &str,
    server: &str,
    credential: &Credential,
) -> Result<(), CredentialError> {
    let failed = |reason| CredentialError::Helper { name: name.to_owned(), reason };
    let (username, secret) = match credential {
        Credential::Password { username, password } => (username.as_str(), password),
        Credential::IdentityToken(token) => (TOKEN_USER, token),
        Credential::RegistryToken(_) => return Err(failed("helpers keep no registry tokens")),
    };
    let entry = Entry { server, username, secret: secret.expose() };
    let mut input = Zeroizing::new(Vec::with_capacity(MAX_ANSWER_BYTES));
    serde_json::to_writer(&mut *input, &entry).map_err(|_| failed("the entry cannot be written as JSON"))?;
    let (success, _) = run(environment, name, "store", &input).await?;
    if success { Ok(()) } else { Err(failed("it did not store the credential")) }
}

/// Makes a helper forget the credential of a server. A helper without one may report that as an error: it is ignored
/// if the helper then has none.
pub(super) async fn erase(environment: &HelperEnvironment, name: &str, server: &str) -> Result<(), CredentialError> {
    let (success, _) = run(environment, name, "erase", server.as_bytes()).await?;
    if success || get(environment, name, server).await?.is_none() {
        return Ok(());
    }
    Err(CredentialError::Helper { name: name.to_owned(), reason: "it did not erase the credential" })
}

/// Runs a helper. Returns `true` on success, and the output.
async fn run(
    environment: &HelperEnvironment,
    name: &str,
    action: &str,
    input: &[u8],
) -> Result<(bool, Zeroizing<Vec<u8>>), CredentialError> {
    let name = checked_name(name)?;
    let program = find(environment, name).ok_or_else(|| CredentialError::HelperNotFound { name: name.to_owned() })?;
    let failed = |reason| CredentialError::Helper { name: name.to_owned(), reason };
    let mut child = Command::new(program)
        .arg(action)
        .env_clear()
        .envs(environment.variables.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| CredentialError::HelperStart { name: name.to_owned(), source })?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("its input or output is not connected"));
    };
    let exchange = async {
        let write = async {
            // A helper that reads nothing has closed its input; its exit status decides.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
            drop(stdin);
        };
        let mut output = Zeroizing::new(Vec::with_capacity(MAX_ANSWER_BYTES + 1));
        let mut bounded = stdout.take(MAX_ANSWER_BYTES as u64 + 1);
        let (_, read) = tokio::join!(write, bounded.read_to_end(&mut output));
        read.map_err(|_| failed("its output could not be read"))?;
        if output.len() > MAX_ANSWER_BYTES {
            return Err(failed("its output is too large"));
        }
        let status = child.wait().await.map_err(|_| failed("its exit status could not be read"))?;
        Ok((status.success(), output))
    };
    tokio::time::timeout(environment.time, exchange).await.unwrap_or_else(|_| Err(failed("it did not end in time")))
}

fn find(environment: &HelperEnvironment, name: &str) -> Option<PathBuf> {
    let file = format!("docker-credential-{name}{}", std::env::consts::EXE_SUFFIX);
    environment.folders.iter().map(|folder| folder.join(&file)).find(|path| path.is_file())
}
