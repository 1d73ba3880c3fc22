//! HTTP basics: the client, addresses below a base, and addresses masked for display.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, anyhow};
use reqwest::{Client, ClientBuilder, Url, redirect};

use crate::render;

/// Loopback host name.
const LOCALHOST: &str = "localhost";

/// Creates a client with a user agent that does not follow redirects.
pub fn client() -> anyhow::Result<Client> {
    built(Client::builder())
}

/// Creates a client for servers on this machine: without a proxy, and with `localhost` as a loopback address.
pub fn local_client() -> anyhow::Result<Client> {
    // The address has its own port.
    let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    built(
        Client::builder().no_proxy().resolve_to_addrs(LOCALHOST, &addresses.map(|address| SocketAddr::new(address, 0))),
    )
}

fn built(builder: ClientBuilder) -> anyhow::Result<Client> {
    // Fails only if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    builder
        .redirect(redirect::Policy::none())
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("cannot set up the HTTP client")
}

/// `true` for an address of this machine: `localhost` or a loopback address.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == LOCALHOST || address.is_ok_and(|address| address.is_loopback())
}

/// Parses an address from the flag or variable `name`. The error message contains the example `like`.
pub fn address(name: &str, text: &str, like: &str) -> Result<Url, String> {
    // An unparsable address cannot be masked, so it is not repeated.
    let url = Url::parse(text).map_err(|error| format!("{name}: {error}; example: `{like}`"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(format!("{name} `{}` is neither http nor https; example: `{like}`", shown(&url))),
    }
}

/// Returns the address at these segments below `base`.
pub fn below(base: &Url, segments: &[&str]) -> anyhow::Result<Url> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| anyhow!("`{}` cannot be the base of an address", shown(base)))?
        .pop_if_empty()
        .extend(segments);
    Ok(url)
}

/// Formats an address with its password and its query values masked, since a value may be a key.
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    if url.password().is_some() {
        // It has a password, so it can be given another.
        let _ = shown.set_password(Some("***"));
    }
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        let masked = |part: &str| part.split_once('=').map_or("***".to_owned(), |(name, _)| format!("{name}=***"));
        let parts: Vec<String> = query.split('&').map(masked).collect();
        shown.set_query(Some(&parts.join("&")));
    }
    render::one_line(shown.as_str())
}

/// Returns the secrets in an address, encoded and decoded.
pub fn secrets_in(url: &Url) -> impl Iterator<Item = String> {
    let written = url.query().unwrap_or_default().split('&').map(|part| part.split_once('=').unwrap_or(("", part)).1);
    let meant = url.query_pairs().map(|(_, value)| value.into_owned());
    url.password().into_iter().chain(written).map(str::to_owned).chain(meant)
}
