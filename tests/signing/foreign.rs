//! Signatures that other programs made, in `tests/fixtures/signing`, as its `README.md` describes.

use std::fs;

use crate::cli::repository;
use crate::crib::Crib;

use super::{NOT_VERIFIED, pack, statuses, verify};

const FILES: [&str; 6] = [
    "tools.tar",
    "tools.tar.minisig",
    "minisign.pub",
    "tools.tar.sigstore.json",
    "openssl.pub",
    "ed25519.sigstore.json",
];

/// Crib with copies of the files.
fn crib() -> Crib {
    let crib = Crib::new();
    for file in FILES.iter().chain(&["ed25519.pub"]) {
        fs::copy(repository().join("tests/fixtures/signing").join(file), crib.path(file)).unwrap();
    }
    crib
}

#[test]
fn signatures_of_minisign_and_openssl_are_valid() {
    let crib = crib();
    for (key, expected) in [
        ("minisign.pub", ["not_trusted", "valid", "not_trusted"]),
        ("openssl.pub", ["valid", "not_trusted", "not_trusted"]),
        ("ed25519.pub", ["not_trusted", "not_trusted", "valid"]),
    ] {
        let args = ["verify", "tools.tar", "--key", key, "--signature", "ed25519.sigstore.json", "--json"];
        let ran = crib.run(&args);
        assert_eq!(ran.code, Some(0), "{key}: {ran:?}");
        let report = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(statuses(&report), expected, "{ran:?}");
    }
}

#[test]
fn signatures_of_minisign_and_openssl_do_not_fit_another_bundle() {
    let crib = crib();
    pack(&crib.path("tools.tar"), "1.0.1");
    for key in ["minisign.pub", "openssl.pub"] {
        let (ran, report) = verify(&crib, "tools.tar", key);
        assert_eq!(ran.code, NOT_VERIFIED, "{ran:?}");
        assert!(statuses(&report).contains(&"invalid") && !statuses(&report).contains(&"valid"), "{report}");
    }
}

#[test]
fn the_signed_bundle_is_still_written_byte_for_byte() {
    let crib = crib();
    pack(&crib.path("again.tar"), "1.0.0");
    assert!(fs::read(crib.path("again.tar")).unwrap() == fs::read(crib.path("tools.tar")).unwrap());
}
