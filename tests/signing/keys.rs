//! Secret keys: files for their owner alone, never overwritten, with a passphrase that is no argument.

use std::fs;

use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::{create_key, crib, pack};

const PASSPHRASE: &str = "canary horse staple";

#[cfg(unix)]
#[test]
fn a_secret_key_is_for_its_owner_alone() {
    let page = Page::new();
    use std::os::unix::fs::PermissionsExt;
    let (crib, _) = crib();
    let mode = |name: &str| fs::metadata(crib.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a.key"), 0o600);
    assert_eq!(mode("a.key.pub") & 0o400, 0o400);
    fs::set_permissions(crib.path("a.key"), fs::Permissions::from_mode(0o640)).unwrap();
    page.run(&crib, &["sign", "tools.tar", "--key", "a.key"]);
    page.matches("sign/owner");
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
    let page = Page::new();
    let (crib, _) = crib();
    let files = || ["a.key", "a.key.pub"].map(|name| fs::read(crib.path(name)).unwrap());
    let before = files();
    for name in ["a.key", "b.key"] {
        fs::write(crib.path("b.key.pub"), "something").unwrap();
        page.run(&crib, &["key", "new", name, "--no-passphrase"]);
    }
    assert_eq!(files(), before);
    assert!(!crib.path("b.key").exists());
    assert_eq!(fs::read(crib.path("b.key.pub")).unwrap(), b"something");
    page.matches("sign/overwritten");
}

#[test]
fn a_passphrase_comes_from_a_variable_or_a_file() {
    let page = Page::new();
    let crib = Crib::new();
    pack(&crib.path("tools.tar"), "1.0.0");
    fs::write(crib.path("words"), format!("{PASSPHRASE}\n")).unwrap();
    let words = |args: &[&str]| page.command(crib.toolcrib(args).env("WORDS", PASSPHRASE));
    for (key, flags) in [("p.key", &[][..]), ("m.key", &["--minisign"])] {
        words(&[&["key", "new", key, "--passphrase-from", "env:WORDS"], flags].concat());
        for (source, code) in [("env:WORDS", 0), ("file:words", 0), ("file:tools.json", 1), ("env:OTHER", 1)] {
            let ran = words(&[&["sign", "tools.tar", "--key", key, "--passphrase-from", source], flags].concat());
            assert_eq!(ran.code, Some(code), "{source}: {ran:?}");
            assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
        }
        // Nobody is there to be asked.
        words(&[&["sign", "tools.tar", "--key", key], flags].concat());
        let text = fs::read_to_string(crib.path(key)).unwrap();
        assert!(text.contains("ENCRYPTED PRIVATE KEY") || text.contains("minisign encrypted secret key"), "{text}");
    }
    page.matches("sign/passphrase");
}

#[test]
fn a_passphrase_in_an_argument_is_refused_and_not_repeated() {
    let page = Page::new();
    let (crib, _) = crib();
    for source in ["canary-pass", "pass:canary-pass", "fd:canary-pass"] {
        let ran = page.run(&crib, &["key", "new", "c.key", "--passphrase-from", source]);
        assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    }
    let ran = Ran::from(
        crib.toolcrib(&["key", "new", "c.key", "--passphrase-from", "env:W"]).env("W", "short").output().unwrap(),
    );
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("at least 8"), "{ran:?}");
    assert!(!crib.path("c.key").exists());
    page.matches("sign/argument");
}

#[test]
fn a_secret_key_is_not_taken_for_a_public_one() {
    let page = Page::new();
    let (crib, _) = crib();
    page.run(&crib, &["verify", "tools.tar", "--key", "a.key"]);
    page.run(&crib, &["sign", "tools.tar", "--key", "a.key.pub"]);
    page.matches("sign/public");
}

#[test]
fn an_identity_needs_an_issuer_and_a_trust_root() {
    let (crib, _) = crib();
    for flags in [&["--identity", "a"][..], &["--identity", "a", "--issuer", "b"], &["--issuer", "b"]] {
        let ran = crib.run(&[&["verify", "tools.tar"], flags].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}
