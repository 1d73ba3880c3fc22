//! Attempt to use a server, for logins: the reason why it refuses.

use anyhow::anyhow;
use toolcrib::policy::{Secret, SecretStore, Secrets};
use toolcrib::tool::RemoteAddress;
use toolcrib::{Error, HostGate};

use super::fault::Fault;
use super::listing::list;
use super::peer::Peer;

/// Name of a token that is not stored yet.
const TOKEN: &str = "token";

/// Store of one token.
struct OneToken(String);

impl SecretStore for OneToken {
    fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
        Secret::new(name, self.0.as_str()).map(Some)
    }
}

/// Asks a server for its tools, with a token or without, and returns the reason if it refuses.
///
/// # Errors
///
/// The server cannot be reached, or the token is no secret that a request can carry.
pub async fn challenge(gate: &HostGate, server: &RemoteAddress, token: Option<&str>) -> anyhow::Result<Option<Fault>> {
    let secrets = token.map(|token| Secrets::new(OneToken(token.to_owned())));
    let gate = gate.open(server, secrets.as_ref().map(|secrets| (secrets, TOKEN)))?;
    let asked = async {
        let (mut peer, _) = Peer::meet(&gate, server).await?;
        list(&mut peer).await?;
        peer.end().await;
        Ok(())
    };
    match asked.await {
        Ok(()) => Ok(None),
        Err(Fault::Gate(error)) => Err(anyhow!("cannot use the server `{server}`: {error}")),
        Err(fault) => Ok(Some(fault)),
    }
}
