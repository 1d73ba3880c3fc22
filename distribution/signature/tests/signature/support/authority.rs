//! Certificate authority and certificate log that issue certificates of keyless signatures.

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolcrib_signature::keyless::TrustRoot;

use super::{
    encode,
    log::{Log, TIME, trust_root},
};

/// Object identifier of the OIDC issuer in certificates of Sigstore.
const ISSUER: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 8];
/// Object identifier of the list of certificate timestamps (RFC 6962).
const TIMESTAMPS: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
    key_hash: [u8; 32],
    pub(crate) certificate_log: Log,
}

/// Properties of one certificate; the default is a valid one.
pub(crate) struct Request<'a> {
    pub(crate) name: &'a str,
    pub(crate) issuer: &'a str,
    pub(crate) day: u8,
    pub(crate) code_signing: bool,
    pub(crate) logged_in: Option<&'a Log>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let key_hash = Sha256::digest(rcgen::PublicKeyData::subject_public_key_info(&key)).into();
        let certificate = params.self_signed(&key).unwrap().der().to_vec();
        Self { issuer: Issuer::new(params, key), certificate, key_hash, certificate_log: Log::new(7) }
    }

    pub(crate) fn trust_root(&self, log: &Log) -> TrustRoot {
        let authority = json!({
            "subject": { "organization": "example", "commonName": "authority" },
            "uri": "https://authority.example",
            "certChain": { "certificates": [{ "rawBytes": encode(&self.certificate) }] },
            "validFor": { "start": "2021-01-01T00:00:00Z" },
        });
        trust_root(json!([log.description()]), json!([self.certificate_log.description()]), json!([authority]))
    }

    /// Issues a certificate for the key of a PEM document and returns DER.
    pub(crate) fn issue(&self, key: &str, request: &Request<'_>) -> Vec<u8> {
        let key = KeyPair::from_pem(key).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.serial_number = Some(7u64.into());
        params.not_before = date_time_ymd(2023, 11, request.day);
        params.not_after = date_time_ymd(2023, 11, request.day + 1);
        params.subject_alt_names = vec![SanType::URI(request.name.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if request.code_signing {
            ExtendedKeyUsagePurpose::CodeSigning
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let text = [&[0x0c, u8::try_from(request.issuer.len()).unwrap()], request.issuer.as_bytes()].concat();
        params.custom_extensions = vec![CustomExtension::from_oid_content(ISSUER, text)];
        if let Some(log) = request.logged_in {
            let unlogged = params.signed_by(&key, &self.issuer).unwrap();
            let timestamps = self.timestamps(to_be_signed(unlogged.der()), log);
            params.custom_extensions.push(CustomExtension::from_oid_content(TIMESTAMPS, timestamps));
        }
        params.signed_by(&key, &self.issuer).unwrap().der().to_vec()
    }

    /// Writes a list with one certificate timestamp (RFC 6962, section 3).
    fn timestamps(&self, certificate: &[u8], log: &Log) -> Vec<u8> {
        let time = (TIME as u64 * 1000).to_be_bytes();
        let length = &(certificate.len() as u32).to_be_bytes()[1..];
        let signed = [&[0, 0], &time[..], &[0, 1], &self.key_hash, length, certificate, &[0, 0]].concat();
        let signature = log.sign(&signed);
        let timestamp =
            [&[0], &log.id()[..], &time, &[0, 0, 4, 3], &(signature.len() as u16).to_be_bytes(), &signature].concat();
        let one = [&(timestamp.len() as u16).to_be_bytes()[..], &timestamp].concat();
        let list = [&(one.len() as u16).to_be_bytes()[..], &one].concat();
        assert!(list.len() < 128);
        [&[0x04, list.len() as u8], &list[..]].concat()
    }
}

/// Returns the signed part of a certificate: the first element of the outer sequence.
fn to_be_signed(certificate: &[u8]) -> &[u8] {
    assert_eq!((certificate[0..2].to_vec(), certificate[4..6].to_vec()), (vec![0x30, 0x82], vec![0x30, 0x82]));
    let length = usize::from(u16::from_be_bytes([certificate[6], certificate[7]]));
    &certificate[4..8 + length]
}

/// Encodes a certificate as PEM, as log entries carry it.
pub(crate) fn pem(certificate: &[u8]) -> String {
    let body: Value = encode(certificate);
    let lines: Vec<String> =
        body.as_str().unwrap().as_bytes().chunks(64).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
