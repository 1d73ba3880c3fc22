//! Errors of registries with advice.

use toolcrib_base::render::Advice;
use toolcrib_registry::{Error, Registry};

/// Adds the operation and advice to an error of a registry.
pub fn failed(error: Error, doing: &str, registry: &Registry) -> anyhow::Error {
    let message = format!("cannot {doing}");
    let hint = match &error {
        Error::Unauthorized { sent: false, .. } => format!("log in with `toolcrib login {registry}`"),
        Error::Unauthorized { .. } => {
            format!("check the permissions of the user, or log in again with `toolcrib login {registry}`")
        }
        Error::NotFound { .. } => "check the path and the tag or digest".to_owned(),
        Error::Connection { .. } => {
            "check the name and the network; a registry without TLS needs `--plain-http`".to_owned()
        }
        Error::PlainHttp { .. } => "a registry without TLS needs `--plain-http`".to_owned(),
        Error::PlainHttpCredential { .. } => {
            "let the token server use TLS, or the host and port of the registry, or remove the credential".to_owned()
        }
        Error::Stalled { .. } | Error::Slow { .. } | Error::Deadline { .. } | Error::Truncated { .. } => {
            "try again: what has arrived is kept; `--set registries.timeout=TIME` allows longer pauses".to_owned()
        }
        Error::DigestMismatch { .. } | Error::Size { .. } => {
            "the registry sent other content than it announced: nothing was stored".to_owned()
        }
        Error::Credential(_) => "repair the Docker configuration, or log in again".to_owned(),
        _ => return anyhow::Error::new(error).context(message),
    };
    anyhow::Error::new(error).context(Advice::new(message, hint))
}
