//! Client side of the network: the name resolver and the TLS settings that all requests share.

use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::connect::Tls;
use super::resolve::NameResolver;

/// Name resolver and TLS configuration.
#[derive(Default)]
pub(crate) struct HttpClient {
    pub(super) names: NameResolver,
    pub(super) tls: Tls,
    /// Settings that it was created with.
    settings: (Vec<SocketAddr>, Certificates),
}

impl HttpClient {
    /// Creates a client, with the system's name servers if `name_servers` is empty. It trusts the roots in addition to
    /// the system's roots.
    pub(crate) fn new(name_servers: Vec<SocketAddr>, roots: Certificates) -> Self {
        let settings = (name_servers.clone(), roots.clone());
        Self { names: NameResolver::new(name_servers), tls: Tls::new(roots), settings }
    }

    /// Returns `true` if the client was created with these settings.
    pub(crate) fn has_settings(&self, name_servers: &[SocketAddr], roots: &Certificates) -> bool {
        self.settings.0 == name_servers && self.settings.1 == *roots
    }
}

/// Root certificates.
pub(crate) type Certificates = Vec<CertificateDer<'static>>;

/// Parses the certificates of a PEM file.
///
/// # Errors
///
/// A description of the certificate that is missing or unusable.
pub(crate) fn certificates(pem: &[u8]) -> Result<Certificates, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| format!("the certificates are not PEM: {error:?}"))?;
    if read.is_empty() {
        return Err("there is no `BEGIN CERTIFICATE` in it".to_owned());
    }
    let mut store = rustls::RootCertStore::empty();
    for certificate in &read {
        store.add(certificate.clone()).map_err(|error| format!("a certificate cannot be a root: {error}"))?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        for pem in [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(certificates(pem).is_err());
        }
    }
}
