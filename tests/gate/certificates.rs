//! Certificates for the servers of the tests: our own authority, with valid, invalid and missing signatures.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Authority that is trusted only if configured.
pub(super) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Writes its certificate to a file for a flag.
    pub(super) fn write(&self, path: &Path) {
        fs::write(path, &self.pem).expect("a file");
    }

    /// Server with a certificate for this name.
    pub(super) fn serves(&self, name: &str) -> Arc<ServerConfig> {
        self.signs(CertificateParams::new(vec![name.to_owned()]).expect("a name"))
    }

    /// Server with an expired certificate for this name.
    pub(super) fn served(&self, name: &str) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.signs(params)
    }

    fn signs(&self, params: CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key of rustls");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("its versions of TLS").with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).expect("a key of the certificate"))
    }
}
