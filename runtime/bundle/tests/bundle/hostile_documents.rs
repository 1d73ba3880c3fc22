//! Archives that are plain layouts, with documents and blobs that lie, are refused.

use crate::support::{COMPONENT, Layout, MODULE, config, manifest, read_all, sample};
use serde_json::{Value, json};
use toolcrib_bundle::{
    Archive, BUNDLE_CONFIG, Digest, Error, JsonError, MAX_JSON_DEPTH, OCI_INDEX, OCI_MANIFEST, ProgramFault,
    WASM_CONFIG, open_bytes,
};

/// Returns the error of opening an archive.
fn error(bytes: &[u8]) -> Error {
    open_bytes(bytes).map(|bundle| bundle.digest()).expect_err("the archive must be refused")
}

/// Returns the error of a bundle with these layers, built by `layers`.
fn error_of_layers(layers: impl FnOnce(&mut Layout) -> Vec<Value>) -> Error {
    let mut layout = Layout::default();
    let layers = layers(&mut layout);
    layout.bundle("acme/tools", &layers);
    error(&layout.tar())
}

/// Returns the reason of an error about a document.
fn reason(error: Error) -> String {
    match error {
        Error::Document { reason, .. } | Error::NotABundle { reason, .. } => reason,
        other => panic!("expected an error about a document: {other:?}"),
    }
}

/// Replaces the only occurrence of `old` in an archive.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let positions = (0..bytes.len()).filter(|position| bytes[*position..].starts_with(old)).collect::<Vec<_>>();
    assert_eq!((positions.len(), old.len()), (1, new.len()));
    bytes[positions[0]..][..new.len()].copy_from_slice(new);
}

#[test]
fn the_layouts_of_these_tests_are_valid_without_their_lies() {
    let mut layout = Layout::default();
    let layers = [layout.layer("a.md", "text/markdown", b"a"), layout.layer("b.wasm", "application/wasm", COMPONENT)];
    layout.bundle("acme/tools", &layers);
    assert_eq!(read_all(&layout.tar()).unwrap().1.len(), 2);
}

#[test]
fn a_file_that_does_not_match_its_digest_is_refused_when_it_is_read() {
    let mut bytes = sample();
    replace(&mut bytes, b"# Note\n", b"# Evil\n");
    let mut bundle = open_bytes(&bytes).unwrap();
    let error = bundle.read_file("tools/note.md").and_then(|file| file.into_vec(100)).unwrap_err();
    let Error::DigestMismatch { expected, actual } = error else { panic!("{error:?}") };
    assert_eq!((expected, actual), (Digest::of(b"# Note\n"), Digest::of(b"# Evil\n")));
    assert!(bundle.read_file("LICENSE").unwrap().into_vec(1000).is_ok(), "other files are not affected");
}

#[test]
fn a_manifest_or_config_that_does_not_match_its_digest_is_refused_at_once() {
    let mut bytes = sample();
    replace(&mut bytes, br#""definition":"tools/note.md""#, br#""definition":"tools.json/md""#);
    assert!(matches!(error(&bytes), Error::DigestMismatch { .. }), "config");
    let mut bytes = sample();
    let subject = br#""artifactType":"application/vnd.toolcrib.bundle.v1+json","config""#;
    replace(&mut bytes, subject, br#""artifactType":"application/vnd.toolcrib.bundle.v2+json","config""#);
    assert!(matches!(error(&bytes), Error::DigestMismatch { .. }), "manifest");
}

#[test]
fn a_descriptor_with_another_size_is_refused() {
    for size in [0, 2, 1 << 40, u64::MAX] {
        let error = error_of_layers(|layout| {
            let mut layer = layout.layer("a.md", "text/markdown", b"a");
            layer["size"] = size.into();
            vec![layer]
        });
        assert!(matches!(error, Error::BlobSize { stated, actual: 1, .. } if stated == size));
    }
}

#[test]
fn a_missing_blob_is_refused() {
    let mut layout = Layout::default();
    let layer = layout.layer("a.md", "text/markdown", b"a");
    layout.bundle("acme/tools", &[layer]);
    for missing in 0..layout.blobs.len() {
        let mut blobs = layout.blobs.clone();
        blobs.remove(missing);
        let bytes = Layout { blobs, manifests: layout.manifests.clone() }.tar();
        assert!(matches!(error(&bytes), Error::BlobMissing { .. }));
    }
}

#[test]
fn other_digest_algorithms_are_refused() {
    for digest in ["sha512:00", "md5:00", "sha256:../../../../etc/passwd", "", "sha256:"] {
        let error = error_of_layers(|layout| {
            let mut layer = layout.layer("a.md", "text/markdown", b"a");
            layer["digest"] = digest.into();
            vec![layer]
        });
        assert!(matches!(error, Error::Json { .. }), "{digest}: {error:?}");
    }
}

#[test]
fn depth_bombs_are_refused_in_every_document() {
    let bomb = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
    let too_deep = |error: Error| assert!(matches!(error, Error::Json { source: JsonError::TooDeep, .. }), "{error:?}");
    let mut layout = Layout::default();
    too_deep(error(&layout.tar_with_index(format!(r#"{{"x":{bomb}}}"#).as_bytes())));
    let descriptor = layout.blob(OCI_MANIFEST, bomb.as_bytes());
    layout.manifests = vec![descriptor];
    too_deep(error(&layout.tar()));
    let nested = layout.blob(OCI_INDEX, bomb.as_bytes());
    layout.manifests = vec![nested];
    too_deep(error(&layout.tar()));
    layout.manifests.clear();
    let config = layout.blob(BUNDLE_CONFIG, bomb.as_bytes());
    layout.manifest(&manifest(&config, &[], "acme/tools"), None);
    too_deep(error(&layout.tar()));
    let mut deep = json!(1);
    for _ in 0..MAX_JSON_DEPTH {
        deep = json!([deep]);
    }
    let mut config = config_with_extra(deep);
    let mut layout = Layout::default();
    too_deep({
        layout.bundle_with_config(&config, &[]);
        error(&layout.tar())
    });
    config["extra"] = json!({"unknown": "fields are ignored"});
    let mut layout = Layout::default();
    layout.bundle_with_config(&config, &[]);
    assert!(open_bytes(&layout.tar()).is_ok());
}

/// Returns a valid config with an unknown field.
fn config_with_extra(extra: Value) -> Value {
    let mut config = config("acme/tools", &[]);
    config["extra"] = extra;
    config
}

#[test]
fn keys_that_differ_in_case_alone_are_refused() {
    let index = format!(r#"{{"schemaVersion":2,"manifests":[],"Manifests":[],"mediaType":"{OCI_INDEX}"}}"#);
    let error = error(&Layout::default().tar_with_index(index.as_bytes()));
    assert!(matches!(error, Error::Json { source: JsonError::DuplicateKey { .. }, .. }), "{error:?}");
}

#[test]
fn documents_of_another_structure_are_refused() {
    for index in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"schemaVersion":2}"#,
        r#"{"schemaVersion":"2","manifests":[]}"#,
        r#"{"schemaVersion":2,"manifests":null}"#,
    ] {
        assert!(matches!(error(&Layout::default().tar_with_index(index.as_bytes())), Error::Json { .. }), "{index}");
    }
    let index = br#"{"schemaVersion":2,"manifests":[]}"#;
    assert!(matches!(error(&Layout::default().tar_with_index(index)), Error::NotFound { .. }));
}

#[test]
fn paths_that_leave_the_bundle_or_mislead_are_refused() {
    for path in ["../a", "/a", "a\\b", "C:a", "a/../b", "nul", "a\u{202e}b", "a\0b", "", "a.", "e\u{301}"] {
        let error = error_of_layers(|layout| vec![layout.layer(path, "text/markdown", b"a")]);
        assert!(matches!(error, Error::Path(_)), "{path:?}: {error:?}");
    }
    let untitled = error_of_layers(|layout| vec![layout.blob("text/markdown", b"a")]);
    assert!(reason(untitled).contains("title"));
}

#[test]
fn paths_that_one_file_could_have_are_refused() {
    for (first, second) in [("a.md", "a.md"), ("a.md", "A.md"), ("a", "a/b"), ("straße", "STRASSE")] {
        let error = error_of_layers(|layout| {
            vec![layout.layer(first, "text/markdown", b"1"), layout.layer(second, "text/markdown", b"2")]
        });
        assert!(matches!(error, Error::PathCollision { .. }), "{first} {second}: {error:?}");
    }
}

#[test]
fn a_config_that_contradicts_the_manifest_is_refused() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut layout = Layout::default();
        let layers = [layout.layer("a.md", "text/markdown", b"a"), layout.layer("b.md", "text/markdown", b"b")];
        let mut config = config("acme/tools", &layers);
        change(&mut config);
        layout.bundle_with_config(&config, &layers);
        error(&layout.tar())
    };
    for change in [
        &(|config: &mut Value| config["files"][0]["path"] = "c.md".into()) as &dyn Fn(&mut Value),
        &|config| config["files"][0]["digest"] = Digest::of(b"c").to_string().into(),
        &|config| config["files"][0]["size"] = 2.into(),
        &|config| config["files"][0]["mediaType"] = "text/plain".into(),
        &|config| config["files"].as_array_mut().unwrap().reverse(),
        &|config| drop(config["files"].as_array_mut().unwrap().pop()),
        &|config| config["metadata"]["version"] = "2.0.0".into(),
        &|config| config["metadata"]["description"] = "another".into(),
    ] {
        assert!(reason(refused(change)).contains("manifest"));
    }
    assert!(reason(refused(&|config| config["version"] = 2.into())).contains("version 2"));
    let tool = |name: &str, path: &str| json!({"name": name, "definition": path});
    assert!(reason(refused(&|config| config["tools"] = json!([tool("t", "c.md")]))).contains("not in the bundle"));
    assert!(
        reason(refused(&|config| config["tools"] = json!([tool("t", "a.md"), tool("t", "b.md")]))).contains("twice")
    );
    let refused_text = |change: &dyn Fn(&mut Value)| assert!(matches!(refused(change), Error::Text(_)));
    refused_text(&|config| config["tools"] = json!([tool("t\u{202e}", "a.md")]));
    refused_text(&|config| config["metadata"]["source"] = "/home/me/project".into());
}

#[test]
fn other_artifacts_are_no_bundles() {
    let mut layout = Layout::default();
    let config = layout.blob("application/vnd.oci.image.config.v1+json", b"{}");
    let mut image = manifest(&config, &[], "acme/image");
    image.as_object_mut().unwrap().remove("artifactType");
    layout.manifest(&image, None);
    assert!(reason(error(&layout.tar())).contains("application/vnd.oci.image.config.v1+json"));
    for (artifact, media_type) in
        [(None, BUNDLE_CONFIG), (Some("application/x"), BUNDLE_CONFIG), (Some(""), WASM_CONFIG)]
    {
        let mut layout = Layout::default();
        let config = layout.blob(media_type, b"{}");
        let mut other = manifest(&config, &[], "acme/tools");
        match artifact {
            Some(artifact) => other["artifactType"] = artifact.into(),
            None => drop(other.as_object_mut().unwrap().remove("artifactType")),
        }
        layout.manifest(&other, None);
        assert!(matches!(error(&layout.tar()), Error::NotABundle { .. }), "{media_type}");
    }
}

#[test]
fn a_manifest_of_another_media_type_is_refused() {
    let mut layout = Layout::default();
    layout.bundle("acme/tools", &[]);
    layout.manifests[0]["mediaType"] = "application/vnd.docker.distribution.manifest.v2+json".into();
    assert!(reason(error(&layout.tar())).contains("docker"));
}

#[test]
fn an_index_is_followed_one_level_deep() {
    let mut layout = Layout::default();
    let bundle = layout.bundle("acme/tools", &[]);
    for level in 0..2 {
        let inner = if level == 0 { bundle.clone() } else { layout.manifests[0].clone() };
        let index = layout.document(OCI_INDEX, &json!({"schemaVersion": 2, "manifests": [inner]}));
        layout.manifests = vec![index];
        let opened = Archive::open_bytes(&layout.tar()).map(|archive| archive.manifests().len());
        match level {
            0 => assert_eq!(opened.unwrap(), 1),
            _ => assert!(matches!(opened, Err(Error::NestedIndex { .. }))),
        }
    }
}

#[test]
fn native_and_precompiled_code_is_never_handed_out() {
    let elf = [b"\x7fELF\x02\x01\x01\0".as_slice(), &[0; 600]].concat();
    let cases: [(&str, &[u8]); 6] = [
        ("application/wasm", &elf),
        ("text/markdown", &elf),
        ("application/octet-stream", &elf),
        ("application/wasm", b"(component)"),
        ("application/wasm", b""),
        ("text/markdown", MODULE),
    ];
    for (media_type, content) in cases {
        let mut layout = Layout::default();
        let layer = layout.layer("a", media_type, content);
        layout.bundle("acme/tools", &[layer]);
        let bytes = layout.tar();
        let mut bundle = open_bytes(&bytes).unwrap();
        assert!(matches!(bundle.read_file("a"), Err(Error::Program { .. })), "{media_type}");
        assert!(matches!(bundle.verify(), Err(Error::Program { .. })), "{media_type}");
    }
    let mut layout = Layout::default();
    let layer = layout.layer("a", "text/plain", &elf);
    layout.bundle("acme/tools", &[layer]);
    let bytes = layout.tar();
    let error = open_bytes(&bytes).unwrap().read_file("a").map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Program { fault: ProgramFault::Native { .. }, .. }));
}

#[test]
fn webassembly_artifacts_of_another_form_are_refused() {
    let with = |change: &dyn Fn(&mut Value), layers: usize, media_type: &str| {
        let mut layout = Layout::default();
        let layers = (0..layers).map(|n| layout.layer(&n.to_string(), media_type, COMPONENT)).collect::<Vec<_>>();
        let digests = layers.iter().map(|layer| &layer["digest"]).collect::<Vec<_>>();
        let mut config = json!({"architecture": "wasm", "os": "wasip2", "layerDigests": digests});
        change(&mut config);
        let config = layout.document(WASM_CONFIG, &config);
        layout.manifest(&json!({"schemaVersion": 2, "config": config, "layers": layers}), None);
        open_bytes(&layout.tar()).map(|bundle| bundle.digest())
    };
    assert!(with(&|_| {}, 1, "application/wasm").is_ok());
    assert!(matches!(with(&|_| {}, 0, "application/wasm"), Err(Error::NotABundle { .. })));
    assert!(matches!(with(&|_| {}, 2, "application/wasm"), Err(Error::NotABundle { .. })));
    assert!(matches!(with(&|_| {}, 1, "application/octet-stream"), Err(Error::NotABundle { .. })));
    for (key, value) in [("os", json!("linux")), ("architecture", json!("amd64")), ("layerDigests", json!([]))] {
        let refused = with(&|config| config[key] = value.clone(), 1, "application/wasm");
        assert!(matches!(refused, Err(Error::Document { .. })), "{key}");
    }
}

#[test]
fn a_ref_name_that_misleads_is_refused() {
    for name in ["a\u{202e}b", "a\nb", "", "-"] {
        let mut layout = Layout::default();
        layout.bundle("acme/tools", &[]);
        layout.manifests[0]["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        assert!(matches!(error(&layout.tar()), Error::Reference { .. }), "{name:?}");
    }
}
