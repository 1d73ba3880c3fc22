//! Credentials: stored where Docker keeps them, sent to their registry alone, and never printed.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::server::{Registry, Reply, Request};
use super::{published, run};

const USER: &str = "octocat";

/// Writes a Docker configuration with a password for a registry.
pub(super) fn keep(crib: &Crib, registry: &Registry, password: &str) {
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    let config = json!({ "auths": { registry.address.to_string(): { "auth": auth } } });
    fs::create_dir_all(crib.path("home/.docker")).unwrap();
    fs::write(crib.path("home/.docker/config.json"), config.to_string()).unwrap();
}

/// Demands basic authentication with a password.
fn guarded(password: &str) -> impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static + use<> {
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{password}")));
    move |request, reply| match request.headers.get("authorization") == Some(&expected) {
        true => reply,
        false => Reply::new(401).header("WWW-Authenticate", "Basic realm=\"test\""),
    }
}

fn login(crib: &Crib, registry: &Registry, password: &str) -> Ran {
    let address = registry.address.to_string();
    let mut command = super::command(crib, &["login", &address, "--username", USER, "--password-stdin"]);
    command.env("PATH", crib.path("bin"));
    Ran::with_input(&mut command, password)
}

fn config(crib: &Crib) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(crib.path("home/.docker/config.json")).ok()?).ok()
}

#[test]
fn a_credential_is_checked_stored_used_and_erased() {
    let page = Page::new();
    let (crib, registry, _) = published(100);
    let reference = registry.reference("echo:1");
    registry.twist(guarded("canary-7f"));
    let anonymous = run(&crib, &["pull", &reference]);
    page.show(&anonymous);
    let wrong = login(&crib, &registry, "canary-wrong");
    assert_eq!((wrong.code, config(&crib)), (Some(1), None), "{wrong:?}");
    let right = login(&crib, &registry, "canary-7f\r\n");
    page.show(&right);
    let stored = config(&crib).unwrap();
    let auth = stored["auths"][registry.address.to_string()]["auth"].as_str().unwrap().to_owned();
    assert_eq!(STANDARD.decode(auth).unwrap(), format!("{USER}:canary-7f").as_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(crib.path("home/.docker/config.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(run(&crib, &["pull", &reference]).code, Some(0));
    let out = run(&crib, &["logout", &registry.address.to_string()]);
    assert_eq!(out.stderr, format!("logged out of {}\n", registry.address));
    assert!(config(&crib).unwrap()["auths"].as_object().is_none_or(serde_json::Map::is_empty));
    let again = run(&crib, &["logout", &registry.address.to_string()]);
    page.show(&again);
    for ran in [anonymous, wrong, right, out] {
        assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    }
    page.matches("registry/login");
}

#[test]
fn a_password_is_no_argument_and_needs_a_user_and_a_pipe() {
    let page = Page::new();
    let crib = Crib::new();
    for args in [
        &["login", "r.example", "--password", "x"][..],
        &["login", "r.example", "--password-stdin"],
        &["login", "r.example"],
        &["login", "https://r.example/v2/", "--username", "x"],
        &["login", "oci://r.example/x"],
        &["logout", "a b"],
    ] {
        let ran = run(&crib, args);
        page.show(&ran);
    }
    let registry = Registry::start();
    let long = "x".repeat((16 << 10) + 1);
    for password in ["", "\n", long.as_str()] {
        let ran = login(&crib, &registry, password);
        page.show(&ran);
    }
    assert!(registry.requests().is_empty() && config(&crib).is_none());
    page.matches("registry/password");
}

#[cfg(unix)]
#[test]
fn a_credential_helper_keeps_the_password_and_a_broken_one_is_named() {
    let page = Page::new();
    use std::os::unix::fs::PermissionsExt;

    let (crib, registry, _) = published(100);
    registry.twist(guarded("canary-7f"));
    fs::create_dir_all(crib.path("home/.docker")).unwrap();
    fs::create_dir_all(crib.path("bin")).unwrap();
    fs::write(crib.path("home/.docker/config.json"), r#"{"credsStore":"crib"}"#).unwrap();
    let helper = crib.path("bin/docker-credential-crib");
    let kept = crib.path("kept.json");
    let script = |get: &str| {
        let kept = kept.display();
        let text = format!("#!/bin/sh\ncase $1 in\nstore) /bin/cat > '{kept}' ;;\nget) {get} ;;\nesac\n");
        fs::write(&helper, text).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script(&format!("/bin/cat '{}'", kept.display()));
    let stored = login(&crib, &registry, "canary-7f");
    page.show(&stored);
    assert!(fs::read_to_string(&kept).unwrap().contains("canary-7f"));
    assert!(!config(&crib).unwrap().to_string().contains("auth\""), "the file has no password");
    let pull = |crib: &Crib| {
        let mut command = super::command(crib, &["pull", &registry.reference("echo:1")]);
        page.command(command.env("PATH", crib.path("bin")))
    };
    assert_eq!(pull(&crib).code, Some(0));
    script("echo canary-message; exit 3");
    pull(&crib);
    fs::remove_file(&helper).unwrap();
    assert!(pull(&crib).stderr.contains("`docker-credential-crib` was not found"));
    page.matches("registry/helper");
}
