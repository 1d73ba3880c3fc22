//! Signatures of bundles: keys, signatures beside a tar and in a registry, and everything that is not a valid signature by a
//! trusted signer.

mod foreign;
mod hostile;
mod keys;
mod referrers;
mod registry;

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib_bundle::{BundleBuilder, BundledTool, MediaType, Metadata};

use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Exit code of `verify` for a bundle without a valid signature by a trusted signer.
const NOT_VERIFIED: Option<i32> = Some(3);

/// Writes a bundle with one tool, and returns the digest of its manifest.
fn pack(path: &Path, version: &str) -> String {
    let mut builder = BundleBuilder::new(Metadata::new("acme/tools", version)).unwrap();
    builder.add_bytes("tools/a.wasm", MediaType::WASM, b"\0asm\x0d\0\x01\0").unwrap();
    builder.add_tool(BundledTool::new("a", "tools/a.wasm".parse().unwrap()));
    let mut file = Vec::new();
    let written = builder.write_to(&mut file).unwrap();
    fs::write(path, file).unwrap();
    written.manifest.to_string()
}

/// Crib with `tools.tar` and a key in `a.key`.
fn crib() -> (Crib, String) {
    let crib = Crib::new();
    let digest = pack(&crib.path("tools.tar"), "1.0.0");
    create_key(&crib, "a.key", &[]);
    (crib, digest)
}

/// Creates a key without a passphrase.
fn create_key(crib: &Crib, name: &str, flags: &[&str]) {
    let ran = crib.run(&[&["key", "new", name, "--no-passphrase"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn verify(crib: &Crib, bundle: &str, key: &str) -> (Ran, Value) {
    let ran = crib.run(&["verify", bundle, "--key", key, "--json"]);
    let value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    (ran, value)
}

/// Statuses of the signatures in a report.
fn statuses(report: &Value) -> Vec<&str> {
    let signatures = report["signatures"].as_array().unwrap();
    signatures.iter().map(|signature| signature["status"].as_str().unwrap()).collect()
}

#[test]
fn a_tar_is_signed_and_verified_by_the_key_alone() {
    let page = Page::new();
    let (crib, digest) = crib();
    create_key(&crib, "b.key", &["--algorithm", "ed25519"]);
    let unsigned = verify(&crib, "tools.tar", "a.key.pub");
    assert_eq!((unsigned.0.code, &unsigned.1["signatures"]), (NOT_VERIFIED, &serde_json::json!([])));
    for (key, other) in [("a.key", "b.key"), ("b.key", "a.key")] {
        let ran = crib.run(&["sign", "tools.tar", "--key", key, "--json"]);
        let made: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, made["signature"].as_str()), (Some(0), Some("tools.tar.sigstore.json")), "{ran:?}");
        assert_eq!(made["digest"], digest.as_str());
        let (ran, report) = verify(&crib, "tools.tar", &format!("{key}.pub"));
        assert_eq!((ran.code, statuses(&report)), (Some(0), vec!["valid"]), "{ran:?}");
        assert_eq!((&report["digest"], &report["signers"][0]["id"]), (&Value::from(digest.as_str()), &made["key"]));
        let (ran, report) = verify(&crib, "tools.tar", &format!("{other}.pub"));
        assert_eq!((ran.code, statuses(&report)), (NOT_VERIFIED, vec!["not_trusted"]), "{ran:?}");
        assert!(ran.stderr.contains("no valid signature by a trusted signer"), "{ran:?}");
    }
    let ran = page.run(&crib, &["verify", "tools.tar"]);
    assert_eq!(ran.code, NOT_VERIFIED);
    page.matches("sign/verified");
}

#[test]
fn a_signature_does_not_cover_another_bundle_or_a_damaged_one() {
    let (crib, _) = crib();
    assert_eq!(crib.run(&["sign", "tools.tar", "--key", "a.key"]).code, Some(0));
    pack(&crib.path("next.tar"), "1.0.1");
    fs::copy(crib.path("tools.tar.sigstore.json"), crib.path("next.tar.sigstore.json")).unwrap();
    let (ran, report) = verify(&crib, "next.tar", "a.key.pub");
    assert_eq!((ran.code, statuses(&report)), (NOT_VERIFIED, vec!["invalid"]), "{ran:?}");
    let whole = fs::read(crib.path("tools.tar")).unwrap();
    let program = whole.windows(8).position(|bytes| bytes == b"\0asm\x0d\0\x01\0").unwrap();
    let mut damaged = whole.clone();
    damaged[program + 7] ^= 1;
    fs::write(crib.path("tools.tar"), damaged).unwrap();
    let (ran, _) = verify(&crib, "tools.tar", "a.key.pub");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(crib.run(&["sign", "tools.tar", "--key", "a.key"]).code, Some(1), "nothing incomplete is signed");
    fs::write(crib.path("tools.tar"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(verify(&crib, "tools.tar", "a.key.pub").0.code, Some(1));
}

#[test]
fn a_changed_signature_is_invalid_and_a_file_that_is_none_is_no_failure() {
    let page = Page::new();
    let (crib, _) = crib();
    page.run(&crib, &["sign", "tools.tar", "--key", "a.key"]);
    let path = crib.path("tools.tar.sigstore.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let sig = value["dsseEnvelope"]["signatures"][0]["sig"].as_str().unwrap().to_owned();
    value["dsseEnvelope"]["signatures"][0]["sig"] = format!("{}AAAA", &sig[..sig.len() - 4]).into();
    fs::write(&path, value.to_string()).unwrap();
    let (ran, report) = verify(&crib, "tools.tar", "a.key.pub");
    assert_eq!((ran.code, statuses(&report)), (NOT_VERIFIED, vec!["invalid"]), "{ran:?}");
    for garbage in [&b"garbage"[..], b"", &vec![b' '; (1 << 20) + 1], b"{\"mediaType\":\"\\u001b[2J\"}"] {
        fs::write(&path, garbage).unwrap();
        let ran = page.run(&crib, &["verify", "tools.tar", "--key", "a.key.pub"]);
        assert_eq!(ran.code, NOT_VERIFIED, "{ran:?}");
    }
    page.matches("sign/changed");
}

#[test]
fn a_signature_elsewhere_is_named() {
    let (crib, _) = crib();
    let ran = crib.run(&["sign", "tools.tar", "--key", "a.key", "-o", "work/other.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!crib.path("tools.tar.sigstore.json").exists());
    assert_eq!(verify(&crib, "tools.tar", "a.key.pub").0.code, NOT_VERIFIED);
    let named = ["verify", "tools.tar", "--key", "a.key.pub", "--signature", "work/other.json"];
    assert_eq!(crib.run(&named).code, Some(0));
    let missing = ["verify", "tools.tar", "--key", "a.key.pub", "--signature", "work/none.json"];
    assert_eq!(crib.run(&missing).code, Some(1));
}

#[test]
fn minisign_covers_the_bytes_of_the_tar() {
    let page = Page::new();
    let (crib, _) = crib();
    create_key(&crib, "m.key", &["--minisign"]);
    page.run(&crib, &["sign", "tools.tar", "--key", "m.key", "--minisign"]);
    let (ran, report) = verify(&crib, "tools.tar", "m.key.pub");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = report["signers"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("minisign:RW"), "{id}");
    let mut tar = fs::read(crib.path("tools.tar")).unwrap();
    // Still the same bundle: zeros after its end belong to no entry.
    tar.extend([0; 512]);
    fs::write(crib.path("tools.tar"), tar).unwrap();
    let (ran, report) = verify(&crib, "tools.tar", "m.key.pub");
    assert_eq!((ran.code, statuses(&report)), (NOT_VERIFIED, vec!["invalid"]), "{ran:?}");
    for flags in [&["--key", "m.key"][..], &["--key", "a.key", "--minisign"]] {
        page.run(&crib, &[&["sign", "tools.tar"], flags].concat());
    }
    page.run(&crib, &["sign", "oci://127.0.0.1:1/a:b", "--key", "m.key", "--minisign"]);
    page.matches("sign/minisign");
}

#[test]
fn text_of_a_file_name_and_of_a_missing_bundle_is_escaped() {
    let page = Page::new();
    let (crib, _) = crib();
    page.run(&crib, &["verify", "x\u{1b}[2J.tar"]);
    page.run(&crib, &["verify", "oci://nohost"]);
    page.matches("sign/escaped");
}
