//! Push and pull of bundles and components, by tag and by digest, and the store of those that were pulled.

use std::fs;

use serde_json::json as value;
use toolcrib_bundle::BundleKind;

use crate::crib::{Crib, guest};

use super::server::Registry;
use super::{cached, json, opened, published, run};

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
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--offline connects to no registry"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: with --offline, name the digest"), "{}", refused.stderr);
    assert!(registry.requests().is_empty());
}

#[test]
fn bundles_are_listed_bounded_and_removed_like_compiled_tools() {
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
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("more than the limit of the cache"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: raise the limit with `--max-cache`"), "{}", refused.stderr);
    assert!(cached(&crib).is_empty());
    json(&crib, &["pull", &registry.reference("echo:1")]);
    run(&crib, &["cache", "clear"]);
    assert!(cached(&crib).is_empty());
}

#[test]
fn every_command_with_sources_takes_a_reference() {
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
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        assert!(ran.stderr.contains(&format!("error: cannot pull `{missing}`")), "{args:?} {}", ran.stderr);
        assert!(ran.stderr.contains("cause: the manifest not found in the registry"), "{args:?} {}", ran.stderr);
        assert_eq!(registry.requests().len(), 1, "{args:?}");
        let wrong = run(&crib, &[args, &["oci://nowhere"]].concat());
        assert_eq!(wrong.code, Some(2), "{args:?} {wrong:?}");
        assert!(wrong.stderr.contains("`oci://nowhere`: a reference has the form"), "{args:?} {}", wrong.stderr);
    }
    let call = run(&crib, &["call", "echo", "{}", "--json", "--tools", &missing]);
    assert!(call.stdout.contains("cannot pull"), "{call:?}");
}

#[test]
fn wrong_uses_are_explained() {
    let (crib, registry, digest) = published(100);
    let other = format!("sha256:{}", "0".repeat(64));
    for (args, code, words) in [
        (vec!["push", "bundle.tar", "localhost/x"], 2, "`oci://localhost/x` has no tag; add one"),
        (vec!["push", "bundle.tar", "x:1"], 2, "host or path is missing"),
        (vec!["push", "tools.json", "localhost/x:1"], 1, "cannot read `tools.json`"),
        (vec!["push", "work", "localhost/x:1"], 1, "`work` is not a file"),
        (vec!["push", "bundle.tar", "localhost:1/x:1", "--plain-http=other"], 2, "does not name `other`"),
        (vec!["pull", "localhost:1/x"], 1, "neither a tag nor a digest"),
    ] {
        let ran = run(&crib, &args);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?} {}", ran.stderr);
    }
    let pinned = registry.reference(&format!("echo:2@{other}"));
    let refused = run(&crib, &["push", "bundle.tar", &pinned]);
    assert!(refused.code == Some(1) && refused.stderr.contains(&digest), "{refused:?}");
    assert!(registry.requests().is_empty());
    let to_folder = run(&crib, &["pull", &registry.reference("echo:1"), "-o", "work"]);
    assert!(to_folder.code == Some(1) && to_folder.stderr.contains("cannot write `work`"), "{to_folder:?}");
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
