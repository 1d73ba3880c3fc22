//! Bundle of a server: one file with its pinned definitions. Equal definitions give an equal bundle, so that the digest in a lock
//! pins what a person has agreed to.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tempfile::TempDir;
use toolcrib::policy::Secrets;
use toolcrib::runtime::OpenGate;
use toolcrib::{Error, HostGate, source};
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice};
use toolcrib_bundle::{BundleBuilder, BundledTool, MAX_TEXT_LENGTH, MediaType, Metadata, visible};

use crate::logins::Logins;

use super::fault::Fault;
use super::listing::{Listing, list};
use super::peer::Peer;
use super::pin;
use super::source::ServerSource;

/// File in the bundle.
const FILE: &str = "server.mcp.json";
/// Version of a bundle without one.
const UNVERSIONED: &str = "0.0.0";
/// Maximum time for the list of a server's tools.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Access to servers: the gate, and the tokens that they get.
#[derive(Clone, Default)]
pub struct ServerAccess {
    /// Gate to the hosts of servers.
    pub gate: Arc<HostGate>,
    /// Secrets, with the tokens of logins.
    pub secrets: Option<Secrets>,
    /// Logins.
    pub logins: Option<Logins>,
    /// Capabilities that the user has granted. Without that of its secret, a server is asked without a token.
    pub granted: Vec<String>,
}

impl fmt::Debug for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerAccess")
    }
}

/// Tools of a server, as they are pinned.
#[derive(Debug, Clone)]
pub struct Pinning {
    /// Revision of the protocol.
    pub revision: String,
    /// Name and version that the server states.
    pub title: Option<String>,
    /// Secret that the server gets.
    pub secret: Option<String>,
    /// Tools.
    pub listing: Listing,
}

impl ServerAccess {
    /// Returns the name of the secret that a server gets: the one that the source names, or a login's token.
    ///
    /// # Errors
    ///
    /// The logins cannot be read.
    pub fn secret(&self, source: &ServerSource) -> anyhow::Result<Option<String>> {
        match (&source.secret, &self.logins) {
            (Some(name), _) => Ok(Some(name.clone())),
            (None, Some(logins)) => Ok(logins.of(&source.address)?.map(|login| login.secret)),
            (None, None) => Ok(None),
        }
    }

    /// Returns the name of the secret that is sent: one that a source names only if the user has granted it to the host.
    fn sent(&self, source: &ServerSource) -> anyhow::Result<Option<String>> {
        let Some(name) = &source.secret else { return self.secret(source) };
        match self.logins.as_ref().map_or(Ok(None), |logins| logins.owner(name))? {
            Some(login) if login.server != source.address.as_str() || login.secret != *name => {
                let message =
                    format!("`{name}` belongs to the login at `{}`, and is sent to no other server", login.server);
                let command = format!("`toolcrib login {}`", render::shell_word(source.address.as_str()));
                Err(Advice::new(message, format!("name another secret with `--secret NAME`, or log in with {command}"))
                    .into())
            }
            Some(_) => Ok(Some(name.clone())),
            None => {
                let is_granted = source.capability().is_some_and(|capability| self.granted.contains(&capability));
                Ok(is_granted.then(|| name.clone()))
            }
        }
    }

    /// Opens the gate to a server, in place of one with a token that the server has refused.
    async fn open(
        &self,
        source: &ServerSource,
        secret: Option<String>,
        refused: Option<OpenGate>,
    ) -> anyhow::Result<Option<OpenGate>> {
        let (gate, secrets, address) = (self.gate.clone(), self.secrets.clone(), source.address.clone());
        // The store of secrets can ask a person, and renews tokens.
        let open = move || match (&secrets, &secret, refused) {
            (_, None, None) => gate.open(&address, None).map(Some),
            (Some(secrets), Some(name), None) => gate.open(&address, Some((secrets, name))).map(Some),
            (Some(secrets), Some(name), Some(refused)) => gate.renewed(&refused, &address, (secrets, name)),
            (_, None, Some(_)) => Ok(None),
            (None, Some(name), _) => {
                Err(Error::Secret { name: name.clone(), reason: "no store of secrets is available".to_owned() })
            }
        };
        Ok(tokio::task::spawn_blocking(open).await??)
    }

    /// Asks a server for its tools.
    ///
    /// # Errors
    ///
    /// The server cannot be used, with the command that helps if there is one.
    pub async fn pinning(&self, source: &ServerSource) -> anyhow::Result<Pinning> {
        let (secret, sent) = (self.secret(source)?, self.sent(source)?);
        let mut gate = self.open(source, sent.clone(), None).await?;
        let mut refused = None;
        while let Some(open) = gate {
            match asked(&open, source).await? {
                Ok((revision, title, listing)) => {
                    let listing = listing.fitting(&source.prefix);
                    return Ok(Pinning { revision, title, secret, listing });
                }
                Err(fault @ Fault::Unauthorized { .. }) if refused.is_none() => {
                    refused = Some(fault);
                    gate = self.open(source, sent.clone(), Some(open)).await?;
                }
                Err(fault) => return Err(self.unusable(&fault, source, sent.as_deref())),
            }
        }
        let fault = refused.unwrap_or(Fault::Unauthorized { challenge: None });
        Err(self.unusable(&fault, source, sent.as_deref()))
    }

    /// Describes why a server cannot be used.
    fn unusable(&self, fault: &Fault, source: &ServerSource, secret: Option<&str>) -> anyhow::Error {
        let address = &source.address;
        let message = format!("cannot use the server `{address}`: {fault}");
        let login = self.logins.as_ref().and_then(|logins| logins.of(address).ok().flatten());
        let is_of_login = login.is_some_and(|login| Some(login.secret.as_str()) == secret);
        let command = format!("`toolcrib login {}`", render::shell_word(address.as_str()));
        let ungranted = source.secret.as_deref().filter(|_| secret.is_none());
        let hint = match (fault, secret) {
            (Fault::Unauthorized { .. }, None) if ungranted.is_some() => {
                let word = render::shell_word(address.as_str());
                let name = ungranted.unwrap_or_default();
                let prefix = Some(&source.prefix).filter(|prefix| !prefix.is_empty());
                let prefix = prefix.map(|prefix| format!(" --prefix={prefix}")).unwrap_or_default();
                format!(
                    "you have not granted the secret `{name}` to it; if you trust it, \
                     `toolcrib install {word} --secret={name}{prefix}`"
                )
            }
            (Fault::Unauthorized { .. }, None) => format!(
                "log in with {command}, or store its token with `toolcrib secret set NAME` and name it with `--secret NAME`"
            ),
            (Fault::Unauthorized { .. } | Fault::Forbidden { .. }, Some(_)) if is_of_login => {
                format!("log in again with {command}")
            }
            (Fault::Unauthorized { .. } | Fault::Forbidden { .. }, Some(name)) => {
                format!("store another token with `toolcrib secret set {name}`")
            }
            (Fault::Redirected(_), _) => "name the address that the server redirects to, if you trust it".to_owned(),
            (Fault::Status(404 | 405, _), _) => {
                "name the address of the protocol, which often ends in `/mcp`; the older transport HTTP+SSE is not supported"
                    .to_owned()
            }
            _ => return anyhow!(message),
        };
        Advice::new(message, hint).into()
    }
}

/// Asks a server for its revision, its name and its tools, within a time.
async fn asked(
    gate: &OpenGate,
    source: &ServerSource,
) -> anyhow::Result<Result<(String, Option<String>, Listing), Fault>> {
    let asked = async {
        let (mut peer, title) = Peer::meet(gate, &source.address).await?;
        let listing = list(&mut peer).await?;
        let revision = peer.conversation.revision.clone();
        peer.end().await;
        Ok((revision, title, listing))
    };
    let asked = progress::during("asking the server", tokio::time::timeout(MAX_TIME, asked)).await;
    asked.map_err(|_| anyhow!("`{}` did not list its tools in time", source.address))
}

/// Bundle of a server that was packed.
pub(crate) struct PackedServer {
    pub(crate) file: PathBuf,
    /// Folder of the file, which exists as long as this value.
    pub(crate) folder: TempDir,
    /// Name and version that the server states.
    pub(crate) title: Option<String>,
}

/// Asks a server for its tools, and packs them.
///
/// # Errors
///
/// The server cannot be used, or has no tool that can be used.
pub(crate) async fn pack(source: &ServerSource, access: &ServerAccess) -> anyhow::Result<PackedServer> {
    let pinning = access.pinning(source).await?;
    for skipped in &pinning.listing.skipped {
        render::warning(&format!("`{}`: left out: {skipped}", source.address));
    }
    if pinning.listing.tools.is_empty() {
        return Err(anyhow!("the server `{}` has no usable tool", source.address));
    }
    let folder = tempfile::Builder::new().prefix("toolcrib-server-").tempdir();
    let folder = folder.context("cannot create a temporary folder")?;
    let file = folder.path().join("server.tar");
    let (source, target, title) = (source.clone(), file.clone(), pinning.title.clone());
    tokio::task::spawn_blocking(move || write(&source, &pinning, &target)).await??;
    Ok(PackedServer { file, folder, title })
}

fn write(source: &ServerSource, pinning: &Pinning, target: &Path) -> anyhow::Result<()> {
    let Pinning { revision, secret, listing, .. } = pinning;
    let mut builder = BundleBuilder::new(Metadata::new(source.name(), UNVERSIONED))?;
    let text = pin::text(source, secret.as_deref(), revision, listing);
    builder.add_bytes(FILE, "application/json".parse::<MediaType>()?, text.into_bytes())?;
    for tool in &listing.tools {
        let name = tool["name"].as_str().unwrap_or_default();
        let mut listed = BundledTool::new(format!("{}{name}", source.prefix), FILE.parse()?);
        listed.description = tool["description"].as_str().map(|text| visible(text, MAX_TEXT_LENGTH));
        builder.add_tool(listed);
    }
    builder.write_to(File::create_new(target)?)?;
    match source::load_usable(target) {
        Ok(_) => Ok(()),
        // The path of the bundle means nothing to the user.
        Err(Error::Source { message, .. }) => {
            Err(anyhow!("the tools of `{}` cannot be used: {message}", source.address))
        }
        Err(other) => Err(other.into()),
    }
}
