//! Certificates for the servers of the tests: our own authority, with valid, invalid and missing signatures.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::certificates::{Draft, Key, pem};

/// Authority that is trusted only if configured.
pub(super) struct Authority {
    certificate: Draft,
    key: Key,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = Key::new();
        Self { certificate: Draft::of_authority(key.public()), key }
    }

    /// Writes its certificate to a file for a flag.
    pub(super) fn write(&self, path: &Path) {
        let certificate = self.certificate.signed(&self.certificate.subject, &self.key);
        fs::write(path, pem(&certificate)).expect("a file");
    }

    /// Server with a certificate for this name.
    pub(super) fn serves(&self, name: &str) -> Arc<ServerConfig> {
        let key = Key::new();
        self.signs(&Draft::of_server(key.public(), name), &key)
    }

    /// Server with an expired certificate for this name.
    pub(super) fn served(&self, name: &str) -> Arc<ServerConfig> {
        let key = Key::new();
        let mut draft = Draft::of_server(key.public(), name);
        (draft.from, draft.until) = ((2001, 1, 1), (2002, 1, 1));
        self.signs(&draft, &key)
    }

    fn signs(&self, draft: &Draft, key: &Key) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from(draft.signed(&self.certificate.subject, &self.key));
        let key = PrivatePkcs8KeyDer::from(key.pkcs8().to_vec());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("its versions of TLS").with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate], key.into()).expect("a key of the certificate"))
    }
}
