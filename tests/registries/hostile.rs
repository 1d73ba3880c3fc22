//! Registries that lie, stall and mislead: the program refuses, says why, and stores nothing.

use std::time::{Duration, Instant};

use serde_json::json as value;
use toolcrib_registry::{DOCKER_MANIFEST, Digest, OCI_INDEX, OCI_MANIFEST};

use crate::crib::Crib;
use crate::screen::Page;

use super::server::{Body, Registry, Reply, Request};
use super::{cached, published, run};

/// Size of the bundle beside its program.
const BYTES: usize = 200_000;

fn is_blob(request: &Request) -> bool {
    request.method == "GET" && request.path.contains("/blobs/")
}

fn is_manifest(request: &Request) -> bool {
    request.path.contains("/manifests/")
}

fn body(reply: &Reply) -> Vec<u8> {
    match &reply.body {
        Body::Bytes(bytes) => bytes.clone(),
        _ => Vec::new(),
    }
}

/// Pulls from a registry with a twist. The pull fails soon, with these words, and no bundle is stored.
fn refused(words: &str, twist: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) {
    let (crib, registry, _) = published(BYTES);
    registry.twist(twist);
    let began = Instant::now();
    let ran = run(&crib, &["pull", &registry.reference("echo:1"), "--set", "registries.timeout=300ms"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words}: {ran:?}");
    assert!(ran.stderr.starts_with("error: cannot ") && ran.stderr.contains(words), "{words}: {}", ran.stderr);
    assert!(began.elapsed() < Duration::from_secs(60), "{words}: {:?}", began.elapsed());
    assert!(!cached(&crib).contains(&"bundle".to_owned()), "{words}");
    // Nothing is stored that spoils the next pull.
    registry.twist(|_, reply| reply);
    assert_eq!(run(&crib, &["pull", &registry.reference("echo:1")]).code, Some(0), "{words}");
    assert_eq!(cached(&crib), ["bundle"], "{words}");
}

#[test]
fn a_blob_with_another_content_is_refused() {
    refused("has the digest `sha256:", |request, reply| match is_blob(request) {
        true => {
            let mut bytes = body(&reply);
            bytes[0] ^= 1;
            reply.bytes(bytes)
        }
        false => reply,
    });
}

#[test]
fn a_short_body_and_a_long_one_are_refused() {
    refused("cause: ", |request, reply| match is_blob(request) {
        true => {
            let bytes = body(&reply);
            let length = bytes.len() as u64;
            reply.body(Body::Announced(length, bytes[..bytes.len() / 2].to_vec())).header("X-Kind", "short")
        }
        false => reply,
    });
    refused(" bytes, expected ", |request, reply| match is_blob(request) {
        true => {
            let bytes = [body(&reply), b"more".to_vec()].concat();
            reply.bytes(bytes)
        }
        false => reply,
    });
    refused(" bytes, expected ", |request, reply| match is_blob(request) {
        true => reply.body(Body::Endless),
        false => reply,
    });
}

#[test]
fn a_registry_that_stalls_is_left_after_the_timeout() {
    refused("no data from or to `127.0.0.1:", |request, reply| match is_blob(request) {
        true => {
            let bytes = body(&reply);
            reply.body(Body::Stalled(bytes.len() as u64, bytes[..10].to_vec()))
        }
        false => reply,
    });
}

#[test]
fn a_redirect_to_another_network_is_refused() {
    for target in ["http://169.254.169.254/latest", "https://10.0.0.1/blob", "file:///etc/passwd", "ftp://x/y"] {
        refused("cause: ", move |request, reply| match is_blob(request) {
            true => Reply::new(307).header("Location", target),
            false => reply,
        });
    }
}

#[test]
fn manifests_that_are_no_bundle_are_refused_before_any_blob_is_pulled() {
    let blob = value!({ "mediaType": "a/b", "digest": Digest::of(b""), "size": 0 });
    let platform = value!({ "architecture": "arm64", "os": "linux" });
    let entry = value!({ "mediaType": OCI_MANIFEST, "digest": Digest::of(b"x"), "size": 1, "platform": platform });
    let index = value!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry] });
    let manifest =
        |media_type: &str| value!({ "schemaVersion": 2, "mediaType": media_type, "config": blob, "layers": [blob] });
    let wasm = |layers: serde_json::Value, size: u64| {
        let config =
            value!({ "mediaType": "application/vnd.wasm.config.v0+json", "digest": Digest::of(b"{}"), "size": size });
        value!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers })
    };
    let layer = |size: u64| value!({ "mediaType": "application/wasm", "digest": Digest::of(b"layer"), "size": size });
    let mut attached = wasm(value!([layer(5)]), 2);
    attached["subject"] = entry.clone();
    for (media_type, text, words) in [
        (OCI_INDEX, index.to_string(), "it is an index of several manifests"),
        (
            OCI_INDEX,
            index.to_string(),
            "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 (linux/arm64)",
        ),
        (DOCKER_MANIFEST, manifest(DOCKER_MANIFEST).to_string(), "it is a Docker image"),
        (OCI_MANIFEST, manifest(OCI_MANIFEST).to_string(), "it is neither a bundle nor a component"),
        (OCI_MANIFEST, wasm(value!([]), 2).to_string(), "exactly one layer"),
        (OCI_MANIFEST, attached.to_string(), "it is attached to another artifact"),
        (OCI_MANIFEST, wasm(value!([layer(1 << 40)]), 2).to_string(), "has more than 536870912 bytes"),
        (OCI_MANIFEST, wasm(value!([layer(5)]), 1 << 30).to_string(), "its config has more than"),
        ("text/html", "<html>".to_owned(), "has the media type `text/html`"),
        (OCI_MANIFEST, "[".repeat(1 << 20), "is malformed"),
        (OCI_MANIFEST, "x".repeat((4 << 20) + 1), "is larger than the limit of 4194304 bytes"),
    ] {
        refused(words, move |request, reply| match is_manifest(request) {
            true => Reply::new(200).header("Content-Type", media_type).bytes(text.clone()),
            false => {
                assert!(!is_blob(request), "no blob is asked for");
                reply
            }
        });
    }
}

#[test]
fn a_tag_with_another_digest_than_the_reference_is_refused() {
    let page = Page::new();
    let (crib, registry, _) = published(100);
    let pinned = registry.reference(&format!("echo:1@{}", Digest::of(b"another")));
    let (media_type, bytes) = registry.content.lock().unwrap().manifests["1"].clone();
    registry.twist(move |request, reply| match is_manifest(request) {
        true => Reply::new(200).header("Content-Type", &media_type).bytes(bytes.clone()),
        false => reply,
    });
    let ran = run(&crib, &["pull", &pinned]);
    page.show(&ran);
    assert!(cached(&crib).is_empty());
    page.matches("registry/digest");
}

#[test]
fn a_hostile_token_server_gets_no_credential() {
    for realm in ["http://192.0.2.1/token", "https://192.0.2.1/token", "http://metadata.example/token", "file:///x"] {
        let (crib, registry) = (Crib::new(), Registry::start());
        super::login::keep(&crib, &registry, "canary-7f");
        registry.twist(move |_, _| Reply::new(401).header("WWW-Authenticate", format!("Bearer realm=\"{realm}\"")));
        registry.requests();
        let ran = run(&crib, &["pull", &registry.reference("echo:1"), "--set", "registries.timeout=300ms"]);
        assert_eq!(ran.code, Some(1), "{realm} {ran:?}");
        assert!(ran.stderr.starts_with("error: cannot pull"), "{realm} {}", ran.stderr);
        assert!(!ran.stderr.contains("canary"), "{}", ran.stderr);
        for request in registry.requests() {
            assert!(
                !request.headers.contains_key("authorization"),
                "a registry that asks for a token gets no password"
            );
        }
    }
}

#[test]
fn text_of_a_registry_does_not_reach_the_terminal() {
    let page = Page::new();
    let (crib, registry, _) = published(100);
    registry.twist(|_, _| {
        let body = "{\"errors\":[{\"code\":\"DENIED\",\"message\":\"canary \\u001b[31m\"}]}";
        Reply::new(418).bytes(body)
    });
    let ran = run(&crib, &["pull", &registry.reference("echo:1")]);
    page.show(&ran);
    page.matches("registry/hostile-text");
}
