//! Certificate authority and certificate log that issue certificates of keyless signatures.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use toolcrib_signature::{key::Signer, keyless::TrustRoot};
use x509_cert::{
    der::{
        Decode as _, Encode as _,
        asn1::OctetString,
        oid::{
            ObjectIdentifier,
            db::rfc5280::{ID_KP_CODE_SIGNING, ID_KP_SERVER_AUTH},
        },
    },
    ext::{
        Extension,
        pkix::{ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName, name::GeneralName},
    },
    name::Name,
    spki::SubjectPublicKeyInfoOwned,
};

use super::{
    certificates::{Draft, Key, ascii},
    encode,
    log::{Log, TIME, trust_root},
};

/// Object identifier for the OIDC issuer in Sigstore certificates.
const ISSUER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");
/// Object identifier for the list of certificate timestamps (RFC 6962).
const TIMESTAMPS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.2");

pub(crate) struct Authority {
    name: Name,
    key: Key,
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
        let key = Key::new();
        let mut draft = Draft::of_authority(key.public());
        draft.extend(&KeyUsage(KeyUsages::KeyCertSign.into()));
        let key_hash = Sha256::digest(key.public().to_der().unwrap()).into();
        let certificate = draft.signed(&draft.subject, &key);
        Self { name: draft.subject, key, certificate, key_hash, certificate_log: Log::new(7) }
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
        let key = Signer::from_pem(key.as_bytes(), None).unwrap().public_key().to_der().unwrap();
        let mut draft = Draft::new(SubjectPublicKeyInfoOwned::from_der(&key).unwrap());
        draft.subject = Name::default();
        draft.serial = 7;
        draft.from = (2023, 11, request.day);
        draft.until = (2023, 11, request.day + 1);
        draft.extend(&SubjectAltName(vec![GeneralName::UniformResourceIdentifier(ascii(request.name))]));
        draft.extend(&KeyUsage(KeyUsages::DigitalSignature.into()));
        let usage = if request.code_signing { ID_KP_CODE_SIGNING } else { ID_KP_SERVER_AUTH };
        draft.extend(&ExtendedKeyUsage(vec![usage]));
        let text = [&[0x0c, u8::try_from(request.issuer.len()).unwrap()], request.issuer.as_bytes()].concat();
        draft.push(extension(ISSUER, text));
        if let Some(log) = request.logged_in {
            let unlogged = draft.to_be_signed(&self.name).to_der().unwrap();
            draft.push(extension(TIMESTAMPS, self.timestamps(&unlogged, log)));
        }
        draft.signed(&self.name, &self.key)
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

fn extension(extn_id: ObjectIdentifier, content: Vec<u8>) -> Extension {
    Extension { extn_id, critical: false, extn_value: OctetString::new(content).unwrap() }
}
