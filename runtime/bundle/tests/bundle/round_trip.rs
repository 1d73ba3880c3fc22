//! Bundles are read as they were written, selected among several artifacts, and WebAssembly artifacts of other tools are read too.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};

use crate::support::{COMPONENT, Layout, MODULE, sample, sample_files, sample_metadata};
use serde_json::json;
use toolcrib_bundle::{
    ARCHIVE_PREFIX, Archive, ArchiveBuilder, BUNDLE_ARTIFACT_TYPE, Bundle, BundleKind, Descriptor, Digest, Error,
    Manifest, MediaType, OCI_INDEX, OCI_MANIFEST, REF_NAME, Selector, TITLE, WASM_CONFIG, looks_like_archive,
    open_bytes, program_kind,
};

#[test]
fn every_file_and_all_metadata_are_read_as_they_were_written() {
    let bytes = sample();
    let mut bundle = open_bytes(&bytes).unwrap();
    assert_eq!(bundle.kind(), BundleKind::Tools);
    assert_eq!(bundle.ref_name(), Some("1.2.0_build"));
    assert_eq!(bundle.metadata(), Some(&sample_metadata()));
    assert_eq!(bundle.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["note", "read"]);
    assert_eq!(bundle.tools()[1].program.as_ref().unwrap().as_str(), "tools/bin/read.wasm");
    assert_eq!(bundle.files().len(), sample_files().len());
    for (path, media_type, content) in sample_files() {
        let file = bundle.file(path).unwrap().clone();
        assert_eq!((file.media_type, file.digest, file.size), (media_type, Digest::of(&content), content.len() as u64));
        let mut reader = bundle.read_file(path).unwrap();
        assert_eq!((reader.digest(), reader.size()), (file.digest, file.size));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, content);
    }
    bundle.verify().unwrap();
    assert!(matches!(bundle.read_file("missing"), Err(Error::FileMissing { .. })));
    assert!(matches!(bundle.read_file("TOOLS.json"), Err(Error::FileMissing { .. })));
    assert_eq!(Digest::of(bundle.manifest_bytes()), bundle.digest());
    assert_eq!(bundle.manifest().annotations["org.opencontainers.image.licenses"], "MIT OR Apache-2.0");
}

#[test]
fn the_digests_of_the_writer_are_those_of_the_reader() {
    let builder = toolcrib_bundle::BundleBuilder::new(sample_metadata()).unwrap();
    let mut bytes = Vec::new();
    let written = builder.write_to(&mut bytes).unwrap();
    let bundle = open_bytes(&bytes).unwrap();
    assert_eq!(written.manifest, bundle.digest());
    assert_eq!(written.config, bundle.manifest().config.digest);
    assert_eq!((written.archive.digest, written.archive.size), (Digest::of(&bytes), bytes.len() as u64));
}

#[test]
fn only_a_regular_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    if let Ok(folder) = File::open(folder.path()) {
        assert!(matches!(Bundle::open(folder), Err(Error::NotAFile)));
    }
    let path = folder.path().join("bundle.tar");
    std::fs::write(&path, sample()).unwrap();
    Bundle::open(File::open(&path).unwrap()).unwrap().verify().unwrap();
}

#[test]
fn a_file_that_changes_while_it_is_open_is_an_error_and_never_other_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar");
    let bytes = sample();
    std::fs::write(&path, &bytes).unwrap();
    let mut bundle = Bundle::open(File::open(&path).unwrap()).unwrap();
    let content = b"# Note\n";
    let position = bytes.windows(content.len()).position(|window| window == content).unwrap() as u64;
    let mut other = OpenOptions::new().write(true).open(&path).unwrap();

    other.seek(SeekFrom::Start(position)).unwrap();
    other.write_all(b"# Evil\n").unwrap();
    let error = bundle.read_file("tools/note.md").and_then(|file| file.into_vec(100)).unwrap_err();
    assert!(matches!(error, Error::DigestMismatch { .. }));
    assert!(matches!(bundle.verify(), Err(Error::DigestMismatch { .. })));

    other.seek(SeekFrom::Start(position)).unwrap();
    other.write_all(content).unwrap();
    assert_eq!(bundle.read_file("tools/note.md").unwrap().into_vec(100).unwrap(), content);

    other.set_len(position + 3).unwrap();
    let error = bundle.read_file("tools/note.md").and_then(|file| file.into_vec(100)).unwrap_err();
    assert!(matches!(error, Error::BlobTruncated { .. }));
}

/// Returns an archive with two bundles, a nested index with a third one, and a signature of the first.
fn several() -> (Vec<u8>, [Digest; 4]) {
    let mut layout = Layout::default();
    let digest = |descriptor: &serde_json::Value| descriptor["digest"].as_str().unwrap().parse::<Digest>().unwrap();
    let mut bundles = ["acme/one", "acme/two", "acme/three"].map(|name| {
        let layer = layout.layer("tools.json", "application/vnd.toolcrib.tools.v1+json", name.as_bytes());
        layout.bundle(name, &[layer])
    });
    layout.manifests.clear();
    let signature = json!({
        "schemaVersion": 2,
        "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "config": layout.blob("application/vnd.oci.empty.v1+json", b"{}"),
        "layers": [layout.blob("application/vnd.dev.sigstore.bundle.v0.3+json", b"signature")],
        "subject": bundles[0],
    });
    let signature = layout.manifest(&signature, None);
    let nested = json!({"schemaVersion": 2, "manifests": [bundles[2]]});
    let mut nested = layout.document(OCI_INDEX, &nested);
    nested["annotations"] = json!({ REF_NAME: "three" });
    bundles[0]["annotations"] = json!({ REF_NAME: "one" });
    bundles[1]["annotations"] = json!({ REF_NAME: "two" });
    layout.manifests.extend([bundles[0].clone(), bundles[1].clone(), nested]);
    let digests = [&bundles[0], &bundles[1], &bundles[2], &signature].map(digest);
    (layout.tar(), digests)
}

#[test]
fn a_bundle_is_selected_by_ref_name_or_digest() {
    let (bytes, digests) = several();
    let open = |selector: Selector| Bundle::select(Archive::open_bytes(&bytes).unwrap(), &selector);
    for (index, name) in ["one", "two", "three"].into_iter().enumerate() {
        let by_name = open(Selector::RefName(name.to_owned())).unwrap();
        let by_digest = open(Selector::Digest(digests[index])).unwrap();
        assert_eq!((by_name.digest(), by_digest.digest()), (digests[index], digests[index]));
        assert_eq!(by_name.ref_name(), Some(name));
        assert_eq!(by_name.metadata().unwrap().name, format!("acme/{name}"));
    }
    assert!(matches!(open(Selector::Only), Err(Error::Ambiguous { .. })));
    let Err(Error::NotFound { available, .. }) = open(Selector::RefName("four".to_owned())) else { panic!() };
    assert!(available.contains("`one`") && available.contains("`three`"), "{available}");
    assert!(matches!(open(Selector::Digest(Digest::of(b""))), Err(Error::NotFound { .. })));
    assert!(matches!(open(Selector::Digest(digests[3])), Err(Error::NotABundle { .. })), "a signature is no bundle");
}

#[test]
fn the_referrers_of_a_bundle_are_found_and_read() {
    let (bytes, digests) = several();
    let mut archive = Archive::open_bytes(&bytes).unwrap();
    let found = archive.referrers(digests[0]).map(|entry| entry.descriptor.digest).collect::<Vec<_>>();
    assert_eq!(found, [digests[3]]);
    assert_eq!(archive.referrers(digests[1]).count(), 0);
    let signature = archive.read_blob(Digest::of(b"signature")).unwrap().into_vec(100).unwrap();
    assert_eq!(signature, b"signature");
    assert!(archive.blobs().any(|(digest, size)| digest == Digest::of(b"signature") && size == 9));
}

#[test]
fn a_signature_beside_a_bundle_does_not_make_the_selection_ambiguous() {
    let bytes = sample();
    let mut bundle = open_bytes(&bytes).unwrap();
    let digest = bundle.digest();
    let mut builder = ArchiveBuilder::new();
    let blobs = bundle.archive().blobs().collect::<Vec<_>>();
    for (blob, _) in blobs.iter().filter(|(blob, _)| *blob != digest) {
        let content = bundle.archive().read_blob(*blob).unwrap().into_vec(1 << 20).unwrap();
        builder.add_bytes(content).unwrap();
    }
    let media_type = OCI_MANIFEST.parse::<MediaType>().unwrap();
    let subject = Descriptor::new(media_type, digest, bundle.manifest_bytes().len() as u64);
    builder.add_manifest(bundle.manifest_bytes().to_vec(), bundle.ref_name()).unwrap();
    let empty = builder.add_bytes(b"{}").unwrap();
    let config = Descriptor::new("application/vnd.oci.empty.v1+json".parse().unwrap(), empty, 2);
    let mut signature = Manifest::new("application/vnd.dev.sigstore.bundle.v0.3+json", config, Vec::new());
    signature.subject = Some(subject);
    builder.add_manifest(signature.to_json().unwrap(), None).unwrap();
    let mut signed = Vec::new();
    builder.write_to(&mut signed).unwrap();

    let mut again = open_bytes(&signed).unwrap();
    assert_eq!(again.digest(), digest);
    again.verify().unwrap();
    let referrer = again.into_archive().referrers(digest).next().unwrap().clone();
    assert_eq!(referrer.artifact_type, "application/vnd.dev.sigstore.bundle.v0.3+json");
}

#[test]
fn an_archive_that_is_copied_blob_by_blob_is_the_same() {
    let bytes = sample();
    let mut bundle = open_bytes(&bytes).unwrap();
    let blobs = bundle.archive().blobs().collect::<Vec<_>>();
    let mut builder = ArchiveBuilder::new();
    for (blob, size) in blobs.into_iter().rev() {
        let content = bundle.archive().read_blob(blob).unwrap().into_vec(size).unwrap();
        builder.add_source(size, Cursor::new(content)).unwrap();
    }
    builder.add_manifest(bundle.manifest_bytes().to_vec(), bundle.ref_name()).unwrap();
    let mut copy = Vec::new();
    builder.write_to(&mut copy).unwrap();
    assert_eq!(copy, bytes);
}

/// Returns a WebAssembly artifact as other tools publish it.
fn artifact(os: &str, program: &[u8], annotations: serde_json::Value) -> Vec<u8> {
    let mut layout = Layout::default();
    let mut layer = layout.blob("application/wasm", program);
    let config = json!({
        "created": "2025-01-01T00:00:00Z", "author": "someone", "architecture": "wasm", "os": os,
        "layerDigests": [layer["digest"]], "component": {"exports": [], "imports": []},
    });
    layer["annotations"] = annotations;
    let config = layout.document(WASM_CONFIG, &config);
    layout.manifest(
        &json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]}),
        Some("latest"),
    );
    layout.tar()
}

#[test]
fn a_webassembly_artifact_of_another_tool_is_read_like_a_bundle_with_one_file() {
    for (os, program) in [("wasip2", COMPONENT), ("wasip1", MODULE)] {
        let bytes = artifact(os, program, json!({}));
        let mut bundle = open_bytes(&bytes).unwrap();
        assert_eq!(bundle.kind(), BundleKind::WasmArtifact);
        assert!(bundle.metadata().is_none() && bundle.tools().is_empty());
        let content = bundle.read_file("component.wasm").unwrap().into_vec(100).unwrap();
        assert_eq!(program_kind(&content), program_kind(program));
        bundle.verify().unwrap();
    }
}

#[test]
fn the_title_of_a_webassembly_artifact_is_its_path_if_it_is_a_valid_one() {
    for (title, path) in [("greet.wasm", "greet.wasm"), ("../greet.wasm", "component.wasm"), ("/x", "component.wasm")] {
        let bytes = artifact("wasip2", COMPONENT, json!({ TITLE: title }));
        assert_eq!(open_bytes(&bytes).unwrap().files()[0].path.as_str(), path);
    }
}

#[test]
fn the_artifact_type_of_a_manifest_is_that_of_its_config_if_it_states_none() {
    let bytes = artifact("wasip2", COMPONENT, json!({}));
    assert_eq!(Archive::open_bytes(&bytes).unwrap().manifests()[0].artifact_type, WASM_CONFIG);
    assert_eq!(Archive::open_bytes(&sample()).unwrap().manifests()[0].artifact_type, BUNDLE_ARTIFACT_TYPE);
}

#[test]
fn sources_keep_their_order_and_a_bundle_is_known_by_its_first_bytes() {
    let mut builder = toolcrib_bundle::BundleBuilder::new(sample_metadata()).unwrap();
    for path in ["b/tools.json", "a.md"] {
        builder.add_bytes(path, MediaType::TEXT, path).unwrap();
        builder.add_source_path(path.split('/').next().unwrap().parse().unwrap());
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut bytes).unwrap();
    let sources = open_bytes(&bytes).unwrap().sources().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(sources, ["b", "a.md"]);
    assert!(open_bytes(&sample()).unwrap().sources().is_empty());
    assert!(looks_like_archive(&bytes[..ARCHIVE_PREFIX]) && looks_like_archive(b"\x1f\x8b"));
    assert!(!looks_like_archive(&bytes[..ARCHIVE_PREFIX - 1]) && !looks_like_archive(b"{}"));
}
