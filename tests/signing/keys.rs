//! Secret keys: files for their owner alone, never overwritten, with a passphrase that is no argument.

use std::fs;

use crate::crib::{Crib, Ran};

use super::{create_key, crib, pack};

const PASSPHRASE: &str = "canary horse staple";

#[cfg(unix)]
#[test]
fn a_secret_key_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (crib, _) = crib();
    let mode = |name: &str| fs::metadata(crib.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a.key"), 0o600);
    assert_eq!(mode("a.key.pub") & 0o400, 0o400);
    fs::set_permissions(crib.path("a.key"), fs::Permissions::from_mode(0o640)).unwrap();
    let ran = crib.run(&["sign", "tools.tar", "--key", "a.key"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("mode 0640"), "{ran:?}");
}

#[test]
fn a_public_key_and_a_component_lead_to_what_was_meant() {
    let (crib, _) = crib();
    create_key(&crib, "m.key", &["--minisign"]);
    for (key, flags) in [("a.key", &[][..]), ("m.key", &["--minisign"])] {
        let ran = crib.run(&[&["sign", "tools.tar", "--key", &format!("{key}.pub")], flags].concat());
        let told = format!(
            "error: `{key}.pub` is a public key, which verifies and cannot sign\n\
             hint: sign with the secret key: `--key {key}`\n"
        );
        assert_eq!((ran.code, ran.stderr), (Some(1), told));
    }
    fs::write(crib.path("greet.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
    for args in [
        &["bundle", "inspect", "greet.wasm"][..],
        &["sign", "greet.wasm", "--key", "a.key"],
        &["verify", "greet.wasm", "--key", "a.key.pub"],
    ] {
        let ran = crib.run(args);
        let told = "error: `greet.wasm` is not a bundle\n\
                    hint: make a bundle of it with `toolcrib bundle pack greet.wasm -o greet.tar`, or ";
        assert!(ran.code == Some(1) && ran.stderr.starts_with(told), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_key_is_never_overwritten() {
    let (crib, _) = crib();
    let files = || ["a.key", "a.key.pub"].map(|name| fs::read(crib.path(name)).unwrap());
    let before = files();
    for name in ["a.key", "b.key"] {
        fs::write(crib.path("b.key.pub"), "something").unwrap();
        let ran = crib.run(&["key", "new", name, "--no-passphrase"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("already exists"), "{ran:?}");
    }
    assert_eq!(files(), before);
    assert!(!crib.path("b.key").exists());
    assert_eq!(fs::read(crib.path("b.key.pub")).unwrap(), b"something");
}

#[test]
fn a_passphrase_comes_from_a_variable_or_a_file() {
    let crib = Crib::new();
    pack(&crib.path("tools.tar"), "1.0.0");
    fs::write(crib.path("words"), format!("{PASSPHRASE}\n")).unwrap();
    let words = |args: &[&str]| Ran::from(crib.toolcrib(args).env("WORDS", PASSPHRASE).output().unwrap());
    for (key, flags) in [("p.key", &[][..]), ("m.key", &["--minisign"])] {
        let ran = words(&[&["key", "new", key, "--passphrase-from", "env:WORDS"], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for (source, code) in [("env:WORDS", 0), ("file:words", 0), ("file:tools.json", 1), ("env:OTHER", 1)] {
            let ran = words(&[&["sign", "tools.tar", "--key", key, "--passphrase-from", source], flags].concat());
            assert_eq!(ran.code, Some(code), "{source}: {ran:?}");
            assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
        }
        // Nobody is there to be asked.
        let ran = words(&[&["sign", "tools.tar", "--key", key], flags].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("--passphrase-from"), "{ran:?}");
        let text = fs::read_to_string(crib.path(key)).unwrap();
        assert!(text.contains("ENCRYPTED PRIVATE KEY") || text.contains("minisign encrypted secret key"), "{text}");
    }
}

#[test]
fn a_passphrase_in_an_argument_is_refused_and_not_repeated() {
    let (crib, _) = crib();
    for source in ["canary-pass", "pass:canary-pass", "fd:canary-pass"] {
        let ran = crib.run(&["key", "new", "c.key", "--passphrase-from", source]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    }
    let ran = Ran::from(
        crib.toolcrib(&["key", "new", "c.key", "--passphrase-from", "env:W"]).env("W", "short").output().unwrap(),
    );
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("at least 8"), "{ran:?}");
    assert!(!crib.path("c.key").exists());
}

#[test]
fn a_secret_key_is_not_taken_for_a_public_one() {
    let (crib, _) = crib();
    let ran = crib.run(&["verify", "tools.tar", "--key", "a.key"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("secret key") && ran.stderr.contains("`.pub`"), "{ran:?}");
    let ran = crib.run(&["sign", "tools.tar", "--key", "a.key.pub"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn an_identity_needs_an_issuer_and_a_trust_root() {
    let (crib, _) = crib();
    for flags in [&["--identity", "a"][..], &["--identity", "a", "--issuer", "b"], &["--issuer", "b"]] {
        let ran = crib.run(&[&["verify", "tools.tar"], flags].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}
