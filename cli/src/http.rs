//! How the program speaks HTTP: one kind of client, addresses below a base, and addresses as they may be shown. It knows
//! nobody whom it speaks to.

use anyhow::{Context, anyhow};
use reqwest::{Client, Url, redirect};

use crate::render;

/// A client that follows no redirect and says who it is.
pub(crate) fn client() -> anyhow::Result<Client> {
    // A second call finds the provider installed, which is as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("cannot set up the HTTP client")
}

/// The address that `text` is, from the flag or variable `name`; written wrong, the message shows one `like` it should be.
pub(crate) fn address(name: &str, text: &str, like: &str) -> Result<Url, String> {
    // What cannot be read cannot be masked, so it is not repeated.
    let url = Url::parse(text).map_err(|error| format!("{name}: {error}; write it like `{like}`"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(format!("{name} `{}`: neither http nor https; write it like `{like}`", shown(&url))),
    }
}

/// The address at these segments below `base`.
pub(crate) fn below(base: &Url, segments: &[&str]) -> anyhow::Result<Url> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| anyhow!("`{}` cannot be the base of an address", shown(base)))?
        .pop_if_empty()
        .extend(segments);
    Ok(url)
}

/// An address without its password, and without the values of its query, of which one may be a key.
pub(crate) fn shown(url: &Url) -> String {
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

/// What in an address must never be shown, as it is written and as it is meant.
pub(crate) fn secrets_in(url: &Url) -> impl Iterator<Item = String> {
    let written = url.query().unwrap_or_default().split('&').map(|part| part.split_once('=').unwrap_or(("", part)).1);
    let meant = url.query_pairs().map(|(_, value)| value.into_owned());
    url.password().into_iter().chain(written).map(str::to_owned).chain(meant)
}
