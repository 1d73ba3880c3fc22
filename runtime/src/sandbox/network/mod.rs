//! Requests of guests to other hosts: one gate, through which all of them go, whatever interface they came in by. It
//! knows grants, names, connections and HTTP, and nothing of the engine.

mod body;
mod connect;
mod exchange;
mod fault;
mod headers;
mod ledger;
mod resolve;
mod secret;

use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

pub(crate) use exchange::{Gate, Times, refuse};
pub(crate) use fault::{Fault, Phase};
pub(crate) use headers::is_own;
pub(crate) use ledger::Ledger;

use connect::Tls;
use resolve::Names;

/// The most characters of a host or a method that are kept in records.
const MAX_KEPT_LEN: usize = 256;

/// What requests are sent with: who is asked about names, and who is trusted to vouch for a host.
#[derive(Default)]
pub(crate) struct Client {
    names: Names,
    tls: Tls,
}

impl Client {
    /// Without name servers, the system's are asked. The roots are trusted beside the system's.
    pub(crate) fn new(name_servers: Vec<SocketAddr>, roots: Certificates) -> Self {
        Self { names: Names::new(name_servers), tls: Tls::new(roots) }
    }
}

/// Certificates that may vouch for a host.
pub(crate) type Certificates = Vec<CertificateDer<'static>>;

/// The certificates of a PEM file.
///
/// # Errors
///
/// Why it has none that can be used.
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

fn clip(text: &str) -> String {
    text.chars().take(MAX_KEPT_LEN).collect()
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
