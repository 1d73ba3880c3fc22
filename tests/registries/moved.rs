//! Push and pull of bundles and components, by tag and by digest, and the store of those that were pulled.

use std::fs;

use serde_json::json as value;
use toolcrib_bundle::BundleKind;

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::server::Registry;
use super::{bundle, cached, json, opened, published, run};

#[test]
fn a_bundle_that_was_pushed_is_pulled_byte_for_byte() {
    let (crib, registry, digest) = published(1000);
    let output = crib.path("copy.tar");
    let reference = registry.reference("echo:1");
    let ran = run(&crib, &["pull", &reference, "-o", output.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout), (Some(0), format!("{reference}@{digest}\n")), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("pulled, "), "{}", ran.stderr);
    assert_eq!(fs::read(&output).unwrap(), fs::read(crib.path("bundle.tar")).unwrap());
    let again = json(&crib, &["pull", &reference]);
    assert_eq!((&again["wasStored"], &again["digest"]), (&value!(true), &value!(digest)));
    assert_eq!(opened(again["file"].as_str().unwrap().as_ref()), digest);
    let pushed = json(&crib, &["push", "bundle.tar", &reference]);
    assert_eq!((&pushed["uploaded"], &pushed["existing"]), (&value!(0), &value!(4)));
}

#[test]
fn a_component_is_pushed_in_the_layout_of_others_and_pulled() {
    let (crib, registry) = (Crib::new(), Registry::start());
    let program = guest("echo");
    let reference = registry.reference("echo:1");
    let pushed = json(&crib, &["push", program.to_str().unwrap(), &reference]);
    let again = json(&crib, &["push", program.to_str().unwrap(), &registry.reference("other:2")]);
    assert_eq!(pushed["digest"], again["digest"]);
    let manifest = registry.content.lock().unwrap().manifests["1"].1.clone();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    let pulled = json(&crib, &["pull", &reference]);
    assert_eq!(pulled["digest"], pushed["digest"]);
    let file = std::fs::File::open(pulled["file"].as_str().unwrap()).unwrap();
    let mut bundle = toolcrib_bundle::Bundle::open(file).unwrap();
    assert_eq!(bundle.kind(), BundleKind::WasmArtifact);
    let read = bundle.read_file("echo.wasm").unwrap().into_vec(64 << 20).unwrap();
    assert_eq!(read, fs::read(program).unwrap());
}

#[test]
fn a_stored_digest_needs_no_registry_and_a_tag_is_looked_up_each_time() {
    let page = Page::new();
    let (crib, registry, digest) = published(1000);
    json(&crib, &["pull", &registry.reference("echo:1")]);
    registry.requests();
    let pinned = registry.reference(&format!("echo@{digest}"));
    for flags in [&[][..], &["--offline"]] {
        assert_eq!(json(&crib, &[&["pull", &pinned], flags].concat())["wasStored"], true);
    }
    assert!(registry.requests().is_empty());
    json(&crib, &["pull", &registry.reference("echo:1")]);
    assert_eq!(registry.requests().len(), 1, "the manifest alone");
    let refused = run(&crib, &["pull", &registry.reference("echo:1"), "--offline"]);
    page.show(&refused);
    assert!(registry.requests().is_empty());
    page.matches("registry/stored");
}

#[test]
fn bundles_are_listed_bounded_and_removed_like_compiled_tools() {
    let page = Page::new().hide(r"(--max-cache |\()\d+", "$1[limit]");
    let (crib, registry, digest) = published(100_000);
    let bytes = json(&crib, &["pull", &registry.reference("echo:1")])["bytes"].as_u64().unwrap();
    let listed = json(&crib, &["cache", "list"]);
    assert_eq!((&listed[0]["kind"], &listed[0]["digest"]), (&value!("bundle"), &value!(digest)));
    assert_eq!(listed[0]["bytes"], bytes);
    let table = run(&crib, &["cache", "list"]).stdout;
    assert!(table.lines().nth(1).unwrap().contains("…  bundle  "), "{table}");
    let doctor = run(&crib, &["doctor"]).stdout;
    assert!(doctor.contains(", 0 compiled tools, 1 bundle, "), "{doctor}");
    let small = (bytes - 100_000).to_string();
    assert_eq!(run(&crib, &["cache", "prune", "--max", &small]).stderr.lines().count(), 1);
    assert!(cached(&crib).is_empty());
    let refused = run(&crib, &["pull", &registry.reference("echo:1"), "--max-cache", &small]);
    page.show(&refused);
    assert!(cached(&crib).is_empty());
    json(&crib, &["pull", &registry.reference("echo:1")]);
    run(&crib, &["cache", "clear"]);
    assert!(cached(&crib).is_empty());
    page.matches("registry/cache");
}

#[test]
fn every_command_with_sources_takes_a_reference() {
    let page = Page::new();
    let (crib, registry) = (Crib::new(), Registry::start());
    let missing = registry.reference("missing:1");
    for args in [
        &["list", "--tools"][..],
        &["schema", "--tools"],
        &["export", "--tools"],
        &["doctor", "--tools"],
        &["call", "echo", "{}", "--tools"],
        &["run", "hello", "--dry-run", "--model", "m", "--tools"],
        &["validate"],
        &["validate", "--tools"],
        &["trust"],
        &["inspect"],
        &["inspect", "echo", "--tools"],
    ] {
        let ran = run(&crib, &[args, &[&missing]].concat());
        page.show(&ran);
        assert_eq!(registry.requests().len(), 1, "{args:?}");
        let wrong = run(&crib, &[args, &["oci://nowhere"]].concat());
        page.show(&wrong);
    }
    let call = run(&crib, &["call", "echo", "{}", "--json", "--tools", &missing]);
    page.show(&call);
    page.matches("registry/reference");
}

#[test]
fn wrong_uses_are_explained() {
    let page = Page::new();
    let (crib, registry, _) = published(100);
    let other = format!("sha256:{}", "0".repeat(64));
    for (args, code) in [
        (vec!["push", "bundle.tar", "localhost/x"], 2),
        (vec!["push", "bundle.tar", "x:1"], 2),
        (vec!["push", "tools.json", "localhost/x:1"], 1),
        (vec!["push", "work", "localhost/x:1"], 1),
        (vec!["push", "bundle.tar", "localhost:1/x:1", "--plain-http=other"], 2),
        (vec!["pull", "localhost:1/x"], 1),
    ] {
        let ran = run(&crib, &args);
        page.show(&ran);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
    }
    let pinned = registry.reference(&format!("echo:2@{other}"));
    let refused = run(&crib, &["push", "bundle.tar", &pinned]);
    page.show(&refused);
    assert!(registry.requests().is_empty());
    let to_folder = run(&crib, &["pull", &registry.reference("echo:1"), "-o", "work"]);
    page.show(&to_folder);
    page.matches("registry/wrong-use");
}

#[test]
fn proxies_of_the_environment_are_not_used() {
    let (crib, registry, _) = published(100);
    let mut command = super::command(&crib, &["pull", &registry.reference("echo:1")]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    assert_eq!(crate::crib::Ran::from(command.output().unwrap()).code, Some(0));
}

#[test]
fn what_settings_allow_reaches_no_tag_that_moved_after_its_trust() {
    let page = Page::new();
    let (mut crib, registry, _) = published(1000);
    crib.trusts = false;
    let reference = registry.reference("echo:1");
    let settings = format!("[sources]\ntools = [\"{reference}\"]\n\n[allow]\nread = [\"work\"]\n");
    fs::write(crib.path("toolcrib.toml"), settings).unwrap();
    let trust = |source: &str| {
        let reviewed: serde_json::Value =
            serde_json::from_str(&run(&crib, &["trust", source, "--json"]).stdout).unwrap();
        let ran = run(&crib, &["trust", source, &format!("--trust={}", reviewed["digest"].as_str().unwrap())]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let granted = |flags: &[&str]| json(&crib, &[&["list"], flags].concat())[0]["granted"].as_array().unwrap().len();
    trust("toolcrib.toml");
    assert_eq!(granted(&[]), 0, "nobody trusts the bundle");
    trust(&reference);
    assert_eq!(granted(&[]), 1);
    let (path, _) = bundle(crib.dir.path(), 2000);
    json(&crib, &["push", path.to_str().unwrap(), &reference]);
    assert_eq!(granted(&[]), 0, "the tag moved");
    page.show(&run(&crib, &["list"]));
    assert_eq!(granted(&["--allow-read=work"]), 1, "a flag is for this command");
    trust(&reference);
    assert_eq!(granted(&[]), 1);
    page.matches("registry/moved");
}
