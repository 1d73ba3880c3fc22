//! Three people with one bundle, end to end: a publisher who signs and pushes, a user who installs and declines an update,
//! and a machine that installs exactly the lock.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};
use crate::registries::Registry;

/// Crib of somebody who trusts nothing yet, with a cache of their own.
fn person() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    crib
}

fn run(crib: &Crib, args: &[&str]) -> Ran {
    let mut command = crib.toolcrib(args);
    command.env("TOOLCRIB_CACHE_DIR", crib.path("cache")).env("TOKEN", "canary");
    Ran::from(command.output().unwrap())
}

fn succeed(crib: &Crib, args: &[&str]) -> Ran {
    let ran = run(crib, args);
    assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    ran
}

/// Packs a version with one tool that requests these variables, pushes it, signs it unless there is no key, and returns
/// its digest.
fn publish(crib: &Crib, reference: &str, version: &str, env: &[&str], key: Option<&str>) -> String {
    let mut tool = crib.entry("env_dump");
    tool["description"] = json!("Shows the weather.");
    tool["capabilities"] = json!({ "env": env });
    crib.manifest(&json!({ "tools": [tool] }));
    let file = format!("weather-{version}.tar");
    succeed(crib, &["bundle", "pack", "tools.json", "-o", &file, "--name", "acme/weather", "--version", version]);
    let pushed: Value = serde_json::from_str(&succeed(crib, &["push", &file, reference, "--json"]).stdout).unwrap();
    if let Some(key) = key {
        succeed(crib, &["sign", reference, "--key", key]);
    }
    pushed["digest"].as_str().unwrap().to_owned()
}

/// Returns `true` if the installed tool sees the variable of its caller.
fn sees_token(crib: &Crib) -> bool {
    let ran = succeed(crib, &["call", "env_dump", "{}"]);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["env"]["TOKEN"] == "canary"
}

/// Codes of the refusals of a command that fails.
fn refusals(crib: &Crib, args: &[&str]) -> Vec<String> {
    let ran = run(crib, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let line: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    let codes = line["refusals"].as_array().unwrap().iter();
    codes.map(|refusal| refusal["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_publisher_a_user_and_a_machine_share_a_bundle_through_a_registry() {
    let registry = Registry::start();
    let reference = registry.reference("weather:1");
    let (publisher, user, machine) = (person(), person(), person());

    // The publisher creates a key, and packs, pushes and signs the first version, which requests nothing.
    succeed(&publisher, &["key", "new", "acme.key", "--no-passphrase"]);
    let first = publish(&publisher, &reference, "1.0.0", &[], Some("acme.key"));
    let public = fs::read(publisher.path("acme.key.pub")).unwrap();

    // The user verifies and installs it.
    fs::write(user.path("acme.pub"), &public).unwrap();
    succeed(&user, &["verify", &reference, "--key", "acme.pub"]);
    let install = ["install", &reference, "--key", "acme.pub"];
    assert_eq!(refusals(&user, &install), ["needs-review"]);
    succeed(&user, &[&install[..], &[&format!("--trust={first}")]].concat());
    assert!(!sees_token(&user));
    let lock = fs::read(user.path("toolcrib.lock")).unwrap();

    // The second version asks for a variable. The user is warned and declines: nothing changes.
    let second = publish(&publisher, &reference, "1.1.0", &["TOKEN"], Some("acme.key"));
    let outdated = succeed(&user, &["outdated"]);
    assert!(outdated.stdout.contains("1.0.0") && outdated.stdout.contains("1.1.0"), "{outdated:?}");
    assert_eq!(refusals(&user, &["update"]), ["too-young"]);
    let warned = run(&user, &["update", "--min-age=0"]);
    assert!(warned.code == Some(1) && warned.stdout.contains("read the environment variable TOKEN"), "{warned:?}");
    assert!(warned.stderr.contains("needs your agreement"), "{warned:?}");
    assert!(fs::read(user.path("toolcrib.lock")).unwrap() == lock && !sees_token(&user));

    // A machine installs the lock as it is, although the tag has moved, once it is given the digest.
    fs::write(machine.path("toolcrib.lock"), &lock).unwrap();
    assert_eq!(refusals(&machine, &["install", "--frozen"]), ["needs-review"]);
    succeed(&machine, &["install", "--frozen", &format!("--trust={first}")]);
    assert!(fs::read(machine.path("toolcrib.lock")).unwrap() == lock && !sees_token(&machine));

    // Without the registry everything installed still works.
    registry.fail();
    assert!(!sees_token(&user) && !sees_token(&machine));
    assert_eq!(run(&user, &["update"]).code, Some(1));
    assert!(fs::read(user.path("toolcrib.lock")).unwrap() == lock, "{second}");
}

#[test]
fn a_release_without_the_signature_and_one_of_another_key_are_refused_until_the_user_accepts_it() {
    let registry = Registry::start();
    let reference = registry.reference("weather:1");
    let (publisher, user) = (person(), person());
    succeed(&publisher, &["key", "new", "acme.key", "--no-passphrase"]);
    succeed(&publisher, &["key", "new", "other.key", "--no-passphrase", "--algorithm", "ed25519"]);
    for name in ["acme", "other"] {
        fs::copy(publisher.path(format!("{name}.key.pub")), user.path(format!("{name}.pub"))).unwrap();
    }
    let first = publish(&publisher, &reference, "1.0.0", &[], Some("acme.key"));
    succeed(&user, &["install", &reference, "--key", "acme.pub", &format!("--trust={first}")]);

    publish(&publisher, &reference, "1.1.0", &[], None);
    assert_eq!(refusals(&user, &["update", "--min-age=0"]), ["signature-missing"]);
    let third = publish(&publisher, &reference, "1.2.0", &[], Some("other.key"));
    assert_eq!(refusals(&user, &["update", "--min-age=0"]), ["signature-missing"], "nobody told the user of the key");
    let known = ["update", "--min-age=0", "--key", "other.pub"];
    assert_eq!(refusals(&user, &known), ["signer-changed"]);
    let refused = run(&user, &known);
    assert!(
        ["--accept=signer-changed", "--min-age=0s", "--key=other.pub"].iter().all(|flag| refused.stderr.contains(flag)),
        "{refused:?}"
    );
    succeed(&user, &[&known[..], &["--accept=signer-changed", &format!("--trust={third}")]].concat());
    // From now on the new key is the pinned one.
    publish(&publisher, &reference, "1.3.0", &[], Some("other.key"));
    succeed(&user, &["update", "--min-age=0"]);
    publish(&publisher, &reference, "1.2.9", &[], Some("other.key"));
    assert_eq!(refusals(&user, &["update", "--min-age=0"]), ["downgrade"]);
}
