//! Keyless signatures by an authority that the test runs itself.

use crate::support::{
    authority::{Authority, Request},
    bundle,
    certificates::pem,
    digest, edited, encode,
    log::{Log, TIME},
};
use serde_json::json;
use toolcrib_signature::{Digest, Error, Identity, Policy, SignedBy, Verified, key::Algorithm, verify};

const NAME: &str = "https://git.example/tools/.workflows/release.yml@refs/tags/v1";
const ISSUER: &str = "https://token.example";

struct World {
    authority: Authority,
    log: Log,
}

impl World {
    fn new() -> Self {
        Self { authority: Authority::new(), log: Log::new(1) }
    }

    fn request(&self) -> Request<'_> {
        let logged_in = Some(&self.authority.certificate_log);
        Request { name: NAME, issuer: ISSUER, day: 14, code_signing: true, logged_in }
    }

    /// Certifies the key, puts the certificate into the bundle and records both in the log.
    fn sign(&self, request: &Request<'_>) -> Vec<u8> {
        let certificate = self.authority.issue(include_str!("data/openssl/p256.pem"), request);
        let bundle = edited(&bundle(Algorithm::EcdsaP256), |b| {
            b["verificationMaterial"] = json!({ "certificate": { "rawBytes": encode(&certificate) } });
        });
        self.log.record(&bundle, &pem(&certificate), TIME)
    }

    fn policy(&self) -> Policy {
        let identity = Identity::new(NAME, ISSUER).unwrap();
        Policy::new().trust_identity(identity).unwrap().trust_root(self.authority.trust_root(&self.log))
    }

    fn check(&self, bundle: &[u8]) -> Result<Verified, Error> {
        verify(bundle, &digest(), &self.policy())
    }
}

#[test]
fn a_keyless_signature_names_identity_issuer_and_time() {
    let world = World::new();
    let verified = world.check(&world.sign(&world.request())).unwrap();
    assert_eq!(verified.signed_by, SignedBy::Identity(Identity::new(NAME, ISSUER).unwrap()));
    assert_eq!(verified.time.unwrap().as_second(), TIME);
    assert_eq!(verified.signed_by.to_string(), format!("identity `{NAME}` of issuer `{ISSUER}`"));
}

#[test]
fn another_digest_is_refused() {
    let world = World::new();
    let bundle = world.sign(&world.request());
    assert!(verify(&bundle, &Digest::of(b"other"), &world.policy()).is_err());
}

#[test]
fn another_name_or_issuer_is_refused() {
    let world = World::new();
    for (name, issuer) in [("https://git.example/evil", ISSUER), (NAME, "https://token.evil"), (ISSUER, NAME)] {
        let error = world.check(&world.sign(&Request { name, issuer, ..world.request() })).unwrap_err();
        assert!(matches!(error, Error::NoTrustedIdentity { .. }), "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains(NAME), "{error}");
    }
}

#[test]
fn a_certificate_that_was_not_valid_at_the_proven_time_is_refused() {
    let world = World::new();
    for day in [12, 16] {
        let error = world.check(&world.sign(&Request { day, ..world.request() })).unwrap_err();
        assert!(matches!(error, Error::Keyless(_)), "{day}: {error}");
    }
}

#[test]
fn a_certificate_for_another_purpose_is_refused() {
    let world = World::new();
    let error = world.check(&world.sign(&Request { code_signing: false, ..world.request() })).unwrap_err();
    assert!(matches!(error, Error::Keyless(_)), "{error}");
}

#[test]
fn a_certificate_without_a_timestamp_of_a_trusted_log_is_refused() {
    let (world, foreign) = (World::new(), Log::new(9));
    for logged_in in [None, Some(&foreign)] {
        let error = world.check(&world.sign(&Request { logged_in, ..world.request() })).unwrap_err();
        assert!(matches!(error, Error::Keyless(_)), "{error}");
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (world, other) = (World::new(), World::new());
    let error = world.check(&other.sign(&other.request())).unwrap_err();
    assert!(matches!(error, Error::Keyless(_)), "{error}");
}

#[test]
fn a_signature_that_is_not_in_the_log_is_refused() {
    let world = World::new();
    let bundle = edited(&world.sign(&world.request()), |b| {
        b["verificationMaterial"].as_object_mut().unwrap().remove("tlogEntries");
    });
    assert!(matches!(world.check(&bundle), Err(Error::Keyless(_))));
    let bundle = edited(&world.sign(&world.request()), |b| {
        b["verificationMaterial"]["tlogEntries"][0].as_object_mut().unwrap().remove("inclusionPromise");
    });
    assert!(matches!(world.check(&bundle), Err(Error::Keyless(_))), "without a promise no time is proven");
}

#[test]
fn a_signature_by_another_key_than_the_certified_one_is_refused() {
    let world = World::new();
    let other = edited(&world.sign(&world.request()), |b| {
        let foreign: serde_json::Value = serde_json::from_slice(&bundle(Algorithm::Ed25519)).unwrap();
        b["dsseEnvelope"] = foreign["dsseEnvelope"].clone();
    });
    assert!(matches!(world.check(&other), Err(Error::Keyless(_))));
}

#[test]
fn a_trusted_identity_does_not_make_its_key_trusted() {
    let world = World::new();
    let error = world.check(&bundle(Algorithm::EcdsaP256)).unwrap_err();
    assert!(matches!(error, Error::Policy { missing: "trusted key", .. }), "{error}");
}
