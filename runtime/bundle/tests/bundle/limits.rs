//! Every bound is exceeded once, by the writer or by a forged archive.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, sink};

use crate::support::{COMPONENT, Layout, MODULE, config};
use serde_json::{Value, json};
use toolcrib_bundle::{
    Archive, ArchiveBuilder, BlobSource, Bundle, BundleBuilder, BundledTool, Error, MAX_ANNOTATIONS, MAX_ARCHIVE_SIZE,
    MAX_BLOB_SIZE, MAX_DOCUMENT_SIZE, MAX_INDEX_SIZE, MAX_JSON_VALUES, MAX_LAYERS, MAX_MANIFESTS, MAX_SOURCES,
    MAX_TOOLS, MediaType, Metadata, OCI_INDEX, OCI_MANIFEST, ProgramFault, open_bytes,
};

/// Returns a builder of an empty bundle.
fn builder<'a>() -> BundleBuilder<'a> {
    BundleBuilder::new(Metadata::new("acme/tools", "1.0.0")).unwrap()
}

/// Returns the error of opening a layout's archive.
fn error(layout: &Layout) -> Error {
    open_bytes(&layout.tar()).map(|bundle| bundle.digest()).expect_err("the archive must be refused")
}

/// Returns the error of a bundle with no files and a changed config.
fn error_of_config(change: impl FnOnce(&mut Value)) -> Error {
    let mut layout = Layout::default();
    let mut config = config("acme/tools", &[]);
    change(&mut config);
    layout.bundle_with_config(&config, &[]);
    error(&layout)
}

/// Zeros of any size, without memory.
struct Zeros(u64);

impl BlobSource for Zeros {
    fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(io::repeat(0).take(self.0)))
    }
}

#[test]
fn an_archive_over_the_size_limit_is_refused_by_its_handle() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(MAX_ARCHIVE_SIZE + 1).unwrap();
    assert!(matches!(Bundle::open(file.try_clone().unwrap()), Err(Error::ArchiveSize { .. })));
    file.set_len(MAX_ARCHIVE_SIZE).unwrap();
    assert!(matches!(Bundle::open(file), Err(Error::Tar(_))), "zeros over the bound of trailing zeros");
}

#[test]
fn a_file_over_the_size_limit_is_not_read_by_the_writer() {
    let mut builder = builder();
    let refused = builder.add_source("a", MediaType::TEXT, MAX_BLOB_SIZE + 1, Zeros(u64::MAX));
    assert!(matches!(refused, Err(Error::TooLarge { document, .. }) if document == "a"));
}

#[test]
fn a_source_of_another_size_is_refused() {
    for size in [0, 2, 4, 100] {
        let refused = builder().add_source("a", MediaType::TEXT, size, Cursor::new(b"abc"));
        assert!(matches!(refused, Err(Error::SourceSize { ref path, .. }) if path == "a"), "{size}: {refused:?}");
    }
}

#[test]
fn a_source_that_changes_between_its_two_readings_is_refused() {
    /// Source with another content for each reading.
    struct Changing(Vec<&'static [u8]>);
    impl BlobSource for Changing {
        fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
            Ok(Box::new(self.0.remove(0)))
        }
    }
    for second in [&b"abd"[..], b"ab", b"abcd", b""] {
        let mut builder = builder();
        builder.add_source("a", MediaType::TEXT, 3, Changing(vec![b"abc", second])).unwrap();
        assert!(matches!(builder.write_to(sink()), Err(Error::SourceChanged { .. })));
    }
}

#[test]
fn too_many_files_are_refused() {
    let mut builder = builder();
    for n in 0..MAX_LAYERS {
        builder.add_bytes(&format!("{n}"), MediaType::TEXT, n.to_string()).unwrap();
    }
    assert!(matches!(builder.add_bytes("one-more", MediaType::TEXT, b""), Err(Error::TooManyLayers)));
    let mut bytes = Vec::new();
    builder.write_to(&mut bytes).unwrap();
    assert_eq!(open_bytes(&bytes).unwrap().files().len(), MAX_LAYERS);

    let mut layout = Layout::default();
    let layers = (0..=MAX_LAYERS).map(|n| layout.layer(&n.to_string(), "text/plain", b"")).collect::<Vec<_>>();
    layout.bundle("acme/tools", &layers);
    assert!(matches!(error(&layout), Error::TooManyLayers));
}

#[test]
fn too_many_blobs_for_an_archive_are_refused() {
    let mut builder = ArchiveBuilder::new();
    for n in 0..toolcrib_bundle::MAX_ENTRIES as u32 - 3 {
        builder.add_bytes(n.to_be_bytes()).unwrap();
    }
    assert!(matches!(builder.write_to(sink()), Err(Error::TooManyEntries)));
}

#[test]
fn too_many_manifests_are_refused() {
    let mut layout = Layout::default();
    let bundle = layout.bundle("acme/tools", &[]);
    layout.manifests = vec![bundle.clone(); MAX_MANIFESTS];
    assert_eq!(Archive::open_bytes(&layout.tar()).unwrap().manifests().len(), MAX_MANIFESTS);
    layout.manifests.push(bundle.clone());
    assert!(matches!(error(&layout), Error::TooManyManifests));
    // Nested indexes count, so that repeating an empty one is no way to more reads.
    let nested = layout.document(OCI_INDEX, &json!({"schemaVersion": 2, "manifests": []}));
    layout.manifests = vec![nested; MAX_MANIFESTS + 1];
    assert!(matches!(error(&layout), Error::TooManyManifests));
    let full = layout.document(OCI_INDEX, &json!({"schemaVersion": 2, "manifests": vec![bundle; MAX_MANIFESTS]}));
    layout.manifests = vec![full];
    assert!(matches!(error(&layout), Error::TooManyManifests));

    let mut builder = ArchiveBuilder::new();
    let open = toolcrib_bundle::Descriptor::new(MediaType::JSON, toolcrib_bundle::Digest::of(b"{}"), 2);
    let manifest = toolcrib_bundle::Manifest::new("application/x", open, Vec::new()).to_json().unwrap();
    for n in 0..MAX_MANIFESTS {
        builder.add_manifest(manifest.clone(), Some(&n.to_string())).unwrap();
    }
    assert!(matches!(builder.add_manifest(manifest, None), Err(Error::TooManyManifests)));
}

#[test]
fn documents_over_their_size_are_refused() {
    let spaces = |size: u64| vec![b' '; size as usize + 1];
    let mut layout = Layout::default();
    layout.manifests = vec![layout.blob(OCI_MANIFEST, &spaces(MAX_DOCUMENT_SIZE))];
    assert!(matches!(error(&layout), Error::TooLarge { max: MAX_DOCUMENT_SIZE, .. }));
    layout.manifests = vec![layout.blob(OCI_INDEX, &spaces(MAX_INDEX_SIZE))];
    assert!(matches!(error(&layout), Error::TooLarge { max: MAX_INDEX_SIZE, .. }));
    let config = error_of_config(|config| config["x"] = "x".repeat(MAX_DOCUMENT_SIZE as usize).into());
    assert!(matches!(config, Error::TooLarge { max: MAX_DOCUMENT_SIZE, .. }));
    let index = Layout::default().tar_with_index(&spaces(MAX_INDEX_SIZE));
    assert!(matches!(open_bytes(&index), Err(Error::Tar(_))));
    let refused = ArchiveBuilder::new().add_manifest(spaces(MAX_DOCUMENT_SIZE), None);
    assert!(matches!(refused, Err(Error::TooLarge { max: MAX_DOCUMENT_SIZE, .. })));
}

#[test]
fn documents_with_too_many_values_are_refused() {
    let error = error_of_config(|config| config["x"] = vec![0; MAX_JSON_VALUES].into());
    assert!(matches!(error, Error::Json { source: toolcrib_bundle::JsonError::TooManyValues, .. }));
}

#[test]
fn too_many_tools_and_annotations_are_refused() {
    let mut with_tools = builder();
    with_tools.add_bytes("t", MediaType::TEXT, b"").unwrap();
    for n in 0..=MAX_TOOLS {
        with_tools.add_tool(BundledTool::new(n.to_string(), "t".parse().unwrap()));
    }
    assert!(matches!(with_tools.write_to(sink()), Err(Error::Document { .. })));
    let mut metadata = Metadata::new("acme/tools", "1.0.0");
    metadata.annotations = (0..=MAX_ANNOTATIONS).map(|n| (n.to_string(), String::new())).collect();
    assert!(matches!(BundleBuilder::new(metadata), Err(Error::Document { .. })));
    let tools = (0..=MAX_TOOLS).map(|n| json!({"name": n.to_string(), "definition": "t"})).collect::<Vec<_>>();
    assert!(matches!(error_of_config(|config| config["tools"] = tools.into()), Error::Document { .. }));
}

#[test]
fn annotations_cannot_replace_those_of_the_specification() {
    for key in ["org.opencontainers.image.title", "ORG.opencontainers.image.created"] {
        let mut metadata = Metadata::new("acme/tools", "1.0.0");
        metadata.annotations.insert(key.to_owned(), "x".to_owned());
        assert!(matches!(BundleBuilder::new(metadata), Err(Error::Document { .. })));
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would_refuse() {
    let add = |path: &str, media_type, bytes: &'static [u8]| builder().add_bytes(path, media_type, bytes);
    assert!(matches!(add("../a", MediaType::TEXT, b""), Err(Error::Path(_))));
    assert!(matches!(add("a", MediaType::WASM, b"(module)"), Err(Error::Program { .. })));
    assert!(matches!(add("a", MediaType::TEXT, MODULE), Err(Error::Program { .. })));
    assert!(matches!(add("a", MediaType::WASM, b"\x7fELF...."), Err(Error::Program { .. })));
    let refused = add("a.CWASM", MediaType::WASM, COMPONENT);
    assert!(matches!(refused, Err(Error::Program { fault: ProgramFault::Native { .. }, .. })));
    for version in ["", "1..0", "-1", "1 0"] {
        assert!(BundleBuilder::new(Metadata::new("acme/tools", version)).is_err(), "{version}");
    }
    assert!(matches!(builder().set_ref_name("../a"), Err(Error::Reference { .. })));
}

#[test]
fn a_refused_file_leaves_no_trace_in_the_bundle() {
    let mut with_refusals = builder();
    with_refusals.add_bytes("a", MediaType::TEXT, b"a").unwrap();
    for (path, media_type, bytes) in
        [("A", MediaType::TEXT, b"other".as_slice()), ("b", MediaType::WASM, b"text"), ("..", MediaType::TEXT, b"x")]
    {
        with_refusals.add_bytes(path, media_type, bytes).unwrap_err();
    }
    let mut plain = builder();
    plain.add_bytes("a", MediaType::TEXT, b"a").unwrap();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    with_refusals.write_to(&mut first).unwrap();
    plain.write_to(&mut second).unwrap();
    assert_eq!(first, second);
}

#[test]
fn a_failing_output_is_an_error() {
    /// Output that is full after some bytes.
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = bytes.len().min(self.0);
            self.0 -= count;
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for space in [0, 1, 512, 1500, 3000] {
        let mut builder = builder();
        builder.add_bytes("a", MediaType::TEXT, b"a").unwrap();
        assert!(matches!(builder.write_to(Full(space)), Err(Error::Io(_))), "{space}");
    }
}

#[test]
fn a_bundle_of_the_largest_blob_is_found_without_reading_it() {
    let layout = Layout::default();
    let mut file = tempfile::tempfile().unwrap();
    let header = |size: u64| {
        crate::support::Entry::file(&format!("blobs/sha256/{}", "0".repeat(64)), b"")
            .with_size(format!("{size:011o}\0"))
    };
    let write = |file: &mut File, size: u64| {
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        io::Write::write_all(file, &header(size).header).unwrap();
        file.seek(SeekFrom::Start(512 + size.next_multiple_of(512))).unwrap();
        io::Write::write_all(file, &layout.tar()).unwrap();
        file.try_clone().unwrap()
    };
    let found = Archive::open(write(&mut file, MAX_BLOB_SIZE)).unwrap();
    assert_eq!(found.blobs().map(|(_, size)| size).collect::<Vec<_>>(), [MAX_BLOB_SIZE]);
    assert!(matches!(Archive::open(write(&mut file, MAX_BLOB_SIZE + 1)), Err(Error::Tar(_))));
}

#[test]
fn too_many_absent_and_repeated_sources_are_refused() {
    let many = (0..=MAX_SOURCES).map(|n| format!("s{n}")).collect::<Vec<_>>();
    for (sources, words) in [
        (json!(many), "more than 256 sources"),
        (json!(["absent"]), "`absent` is not in the bundle"),
        (json!(["../outside"]), "path"),
    ] {
        let error = error_of_config(|config| config["sources"] = sources).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    for paths in [&["a", "a"][..], &["a/b", "a/b"], &["a/b/c"]] {
        let mut builder = builder();
        builder.add_bytes("a/b", MediaType::TEXT, "").unwrap();
        paths.iter().for_each(|path| builder.add_source_path(path.parse().unwrap()));
        assert!(matches!(builder.write_to(sink()), Err(Error::Document { .. })), "{paths:?}");
    }
}
