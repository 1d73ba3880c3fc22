//! X.509 certificates for the servers and signatures of tests, signed by keys of ECDSA P-256.

#![allow(dead_code, reason = "each crate of tests uses a part")]

use std::net::IpAddr;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use x509_cert::der::asn1::{Any, BitString, GeneralizedTime, Ia5String, UtcTime};
use x509_cert::der::oid::db::rfc5912::{ECDSA_WITH_SHA_256, ID_EC_PUBLIC_KEY, SECP_256_R_1};
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::der::{DateTime, Encode as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};
use x509_cert::ext::{AsExtension, Extension};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};
use x509_cert::{Certificate, TbsCertificate, Version};

/// Year, month and day.
pub(crate) type Day = (u16, u8, u8);

/// Secret key.
pub(crate) struct Key {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl Key {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).expect("a key");
        let pkcs8 = pkcs8.as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &pkcs8, &random).expect("a key");
        Self { pair, pkcs8 }
    }

    /// The key in PKCS#8, as DER.
    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The key in PKCS#8, as PEM.
    pub(crate) fn pem(&self) -> String {
        encode_string("PRIVATE KEY", LineEnding::LF, &self.pkcs8).expect("a text")
    }

    pub(crate) fn public(&self) -> SubjectPublicKeyInfoOwned {
        let curve = Any::encode_from(&SECP_256_R_1).expect("a curve");
        let algorithm = AlgorithmIdentifierOwned { oid: ID_EC_PUBLIC_KEY, parameters: Some(curve) };
        let point = BitString::from_bytes(self.pair.public_key().as_ref()).expect("a point");
        SubjectPublicKeyInfoOwned { algorithm, subject_public_key: point }
    }

    fn sign(&self, message: &[u8]) -> BitString {
        let signature = self.pair.sign(&SystemRandom::new(), message).expect("a signature");
        BitString::from_bytes(signature.as_ref()).expect("bits")
    }
}

/// Content of a certificate before it is signed.
pub(crate) struct Draft {
    pub(crate) serial: u8,
    pub(crate) subject: Name,
    pub(crate) from: Day,
    pub(crate) until: Day,
    key: SubjectPublicKeyInfoOwned,
    extensions: Vec<Extension>,
}

impl Draft {
    /// A certificate that is valid now.
    pub(crate) fn new(key: SubjectPublicKeyInfoOwned) -> Self {
        let (from, until) = ((2001, 1, 1), (2101, 1, 1));
        Self { serial: 1, subject: named("test"), from, until, key, extensions: Vec::new() }
    }

    /// A certificate of an authority.
    pub(crate) fn of_authority(key: SubjectPublicKeyInfoOwned) -> Self {
        let mut draft = Self::new(key);
        draft.subject = named("authority");
        draft.extend(&BasicConstraints { ca: true, path_len_constraint: None });
        draft
    }

    /// A certificate of a server with this name or address.
    pub(crate) fn of_server(key: SubjectPublicKeyInfoOwned, name: &str) -> Self {
        let mut draft = Self::new(key);
        let name = name.parse::<IpAddr>().map_or_else(|_| GeneralName::DnsName(ascii(name)), GeneralName::from);
        draft.extend(&SubjectAltName(vec![name]));
        draft
    }

    pub(crate) fn extend(&mut self, extension: &impl AsExtension) {
        let extension = extension.to_extension(&self.subject, &self.extensions).expect("an extension");
        self.extensions.push(extension);
    }

    pub(crate) fn push(&mut self, extension: Extension) {
        self.extensions.push(extension);
    }

    /// The part that is signed.
    pub(crate) fn to_be_signed(&self, issuer: &Name) -> TbsCertificate {
        TbsCertificate {
            version: Version::V3,
            serial_number: SerialNumber::from(self.serial),
            signature: algorithm(),
            issuer: issuer.clone(),
            validity: Validity { not_before: midnight(self.from), not_after: midnight(self.until) },
            subject: self.subject.clone(),
            subject_public_key_info: self.key.clone(),
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: Some(self.extensions.clone()).filter(|list| !list.is_empty()),
        }
    }

    /// The certificate as DER.
    pub(crate) fn signed(&self, issuer: &Name, by: &Key) -> Vec<u8> {
        let tbs_certificate = self.to_be_signed(issuer);
        let signature = by.sign(&tbs_certificate.to_der().expect("DER"));
        Certificate { tbs_certificate, signature_algorithm: algorithm(), signature }.to_der().expect("DER")
    }
}

/// A certificate of a server with this name, signed by its own key, as DER.
pub(crate) fn self_signed(name: &str) -> (Vec<u8>, Key) {
    let key = Key::new();
    let draft = Draft::of_server(key.public(), name);
    (draft.signed(&draft.subject, &key), key)
}

/// Encodes a certificate as PEM.
pub(crate) fn pem(certificate: &[u8]) -> String {
    encode_string("CERTIFICATE", LineEnding::LF, certificate).expect("a text")
}

pub(crate) fn ascii(text: &str) -> Ia5String {
    Ia5String::new(text).expect("ASCII")
}

fn named(name: &str) -> Name {
    format!("CN={name}").parse().expect("a name")
}

fn algorithm() -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA_256, parameters: None }
}

fn midnight((year, month, day): Day) -> Time {
    let time = DateTime::new(year, month, day, 0, 0, 0).expect("a time");
    // RFC 5280, section 4.1.2.5.
    match UtcTime::from_date_time(time) {
        Ok(time) => Time::UtcTime(time),
        Err(_) => Time::GeneralTime(GeneralizedTime::from_date_time(time)),
    }
}
