//! TLS of a server: the certificate and its key, read again when their files change. Files that do not fit together change nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use toolcrib_base::file_version::FileVersion;
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice};

/// Versions of both files; `None` for one that cannot be found.
type Versions = [Option<FileVersion>; 2];

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Certificate of a server with its private key.
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<State>,
}

struct State {
    acceptor: TlsAcceptor,
    /// Versions of this acceptor.
    read: Versions,
    /// Versions that could not be used.
    warned: Option<Versions>,
}

impl Certificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    ///
    /// A file cannot be read or has no such content, or the key is another certificate's.
    pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let read = versions(certificate, key);
        if is_readable_by_others(key) {
            let key = key.display();
            render::warning(&format!("other users can read the private key `{key}`: change its mode to 600"));
        }
        let state = Mutex::new(State { acceptor: acceptor(certificate, key)?, read, warned: None });
        Ok(Self { certificate: certificate.to_path_buf(), key: key.to_path_buf(), state })
    }

    /// Returns the acceptor for a new connection, with the present certificate. If the files cannot be used, it is the last one that
    /// could be, with a warning for each change, and the next connection tries again.
    pub(super) async fn acceptor(self: Arc<Self>) -> Option<TlsAcceptor> {
        tokio::task::spawn_blocking(move || self.read_again()).await.ok()
    }

    fn read_again(&self) -> TlsAcceptor {
        let found = versions(&self.certificate, &self.key);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read != found {
            match acceptor(&self.certificate, &self.key) {
                Ok(acceptor) => {
                    (state.acceptor, state.read) = (acceptor, found);
                    render::aside("the certificate was read again");
                }
                Err(error) if state.warned != Some(found) => {
                    state.warned = Some(found);
                    let error = render::message(&error);
                    render::warning(&format!("{error}; connections get the certificate from before"));
                }
                Err(_) => {}
            }
        }
        state.acceptor.clone()
    }
}

/// Returns `true` if the mode of a file lets other users read it.
#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}

fn versions(certificate: &Path, key: &Path) -> Versions {
    [certificate, key].map(|path| path.metadata().ok().map(|about| FileVersion::of(&about)))
}

/// Reads a file of bounded size.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    input::regular_file(path, MAX_BYTES)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Reads a certificate and its key.
fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let unusable = |path: &Path, content: &str| {
        Advice::new(format!("cannot use `{}`", path.display()), format!("name a PEM file with {content}"))
    };
    let no_chain = || unusable(certificate, "the server's certificate and its intermediate certificates");
    let pem = content(certificate).with_context(no_chain)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.with_context(no_chain)?;
    anyhow::ensure!(!chain.is_empty(), anyhow::anyhow!("the file contains no certificate").context(no_chain()));
    let no_key = || unusable(key, "the private key of the certificate");
    let pem = content(key).with_context(no_key)?;
    let secret = PrivateKeyDer::from_pem_slice(&pem).with_context(no_key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    provider.key_provider.load_private_key(secret.clone_key()).with_context(no_key)?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret);
    let config = config.map_err(|error| {
        let advice = match error {
            rustls::Error::InconsistentKeys(_) => Advice::new(
                format!("the key in `{}` does not match the certificate in `{}`", key.display(), certificate.display()),
                "name the key for which the first certificate of the file was issued",
            ),
            _ => no_chain(),
        };
        anyhow::Error::from(error).context(advice)
    })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
