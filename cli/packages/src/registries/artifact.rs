//! Artifacts to push: the bundles of a tar file with everything attached to them, and a single component in the layout that
//! other tools read.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use toolcrib::source::inspect::{Inspection, ProgramKind};
use toolcrib_base::render::Advice;
use toolcrib_bundle::{
    Archive, Bundle, Descriptor as BundleDescriptor, Digest, MAX_DOCUMENT_SIZE, Manifest as BundleManifest, MediaType,
    TITLE, WASM_CONFIG,
};
use toolcrib_registry::{BlobSource, Descriptor, Manifest, OCI_MANIFEST};

use super::MAX_BLOB_BYTES;

/// First bytes of WebAssembly.
const WASM: [u8; 4] = *b"\0asm";
/// Time of creation in a component's config. The format requires one, and equal components get equal digests with this.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// Manifest with its blobs.
pub(super) struct Artifact {
    pub(super) manifest: Manifest,
    pub(super) blobs: Vec<(Descriptor, BlobSource)>,
}

/// Artifacts of a file: that which is pushed under the tag, and those attached to it, such as signatures.
pub(super) struct Artifacts {
    pub(super) main: Artifact,
    pub(super) attached: Vec<Artifact>,
}

impl Artifacts {
    /// Reads a bundle or a component.
    ///
    /// # Errors
    ///
    /// The file is neither, or cannot be read.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        ensure!(
            file.metadata()?.is_file(),
            Advice::new(
                format!("`{}` is not a file", path.display()),
                "pass a bundle or a component; `toolcrib bundle pack` makes a bundle of sources"
            )
        );
        let mut start = Vec::new();
        (&mut file).take(WASM.len() as u64).read_to_end(&mut start)?;
        file.rewind()?;
        match start == WASM {
            true => Ok(Self { main: component(path)?, attached: Vec::new() }),
            false => bundle(path, file),
        }
    }
}

fn bundle(path: &Path, file: File) -> anyhow::Result<Artifacts> {
    let mut bundle = Bundle::open(file).map_err(|error| {
        let hint = "pass a bundle or a component; `toolcrib bundle pack` makes a bundle of sources";
        let message = format!("`{}` is neither a bundle nor a component", path.display());
        anyhow::Error::new(error).context(Advice::new(message, hint))
    })?;
    bundle.verify().with_context(|| format!("`{}` is damaged", path.display()))?;
    let digest = bundle.digest();
    let mut archive = bundle.into_archive();
    let attached: Vec<Digest> = archive.referrers(digest).map(|manifest| manifest.descriptor.digest).collect();
    let main = from_archive(path, &mut archive, digest)?;
    let attached = attached.into_iter().map(|digest| from_archive(path, &mut archive, digest));
    Ok(Artifacts { main, attached: attached.collect::<anyhow::Result<_>>()? })
}

/// Reads a manifest of an archive. Its blobs stay in the file.
fn from_archive(path: &Path, archive: &mut Archive<File>, digest: Digest) -> anyhow::Result<Artifact> {
    let bytes = archive.read_blob(digest)?.into_vec(MAX_DOCUMENT_SIZE)?;
    let manifest = BundleManifest::parse("the manifest", &bytes)?;
    let mut blobs: Vec<(Descriptor, BlobSource)> = Vec::new();
    for blob in manifest.layers.iter().chain([&manifest.config]) {
        let (offset, size) = archive.blob_range(blob.digest)?;
        let descriptor = Descriptor::new(blob.media_type.as_str(), blob.digest.to_string().parse()?, blob.size);
        let part = BlobSource::FilePart { path: path.to_owned(), offset, size };
        if !blobs.iter().any(|(known, _)| known.digest == descriptor.digest) {
            blobs.push((descriptor, part));
        }
    }
    Ok(Artifact { manifest: Manifest::new(OCI_MANIFEST, bytes)?, blobs })
}

/// Creates the artifact of a component or core module: one layer, and a config that describes it.
fn component(path: &Path) -> anyhow::Result<Artifact> {
    let about = toolcrib::source::inspect(path)?;
    ensure!(about.bytes as u64 <= MAX_BLOB_BYTES, "`{}` has more than {MAX_BLOB_BYTES} bytes", path.display());
    let digest: Digest = about.digest.parse()?;
    let config = config(&about).to_string().into_bytes();
    let mut layer = BundleDescriptor::new(MediaType::WASM, digest, about.bytes as u64);
    if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
        layer.annotations.insert(TITLE.to_owned(), name.to_owned());
    }
    let described = BundleDescriptor::new(WASM_CONFIG.parse()?, Digest::of(&config), config.len() as u64);
    let mut manifest = BundleManifest::new("", described, vec![layer]);
    // The config type is the artifact type.
    manifest.artifact_type = None;
    let blobs = vec![
        (Descriptor::new(MediaType::WASM.as_str(), digest.to_string().parse()?, about.bytes as u64), program(path)),
        (Descriptor::of(WASM_CONFIG, &config), BlobSource::Bytes(config.into())),
    ];
    Ok(Artifact { manifest: Manifest::new(OCI_MANIFEST, manifest.to_json()?)?, blobs })
}

fn program(path: &Path) -> BlobSource {
    BlobSource::File(PathBuf::from(path))
}

/// Describes a program in the format of the config: `wasip1` stands for every core module.
fn config(about: &Inspection) -> Value {
    let is_module = about.kind == ProgramKind::Module;
    let mut config = json!({
        "created": CREATED,
        "architecture": "wasm",
        "os": if is_module { "wasip1" } else { "wasip2" },
        "layerDigests": [about.digest],
    });
    if !is_module {
        let interfaces = about.asks.iter().flatten().flat_map(|request| &request.interfaces);
        let imports: Vec<String> = interfaces
            .map(|interface| match &interface.version {
                Some(version) => format!("{}@{version}", interface.name),
                None => interface.name.clone(),
            })
            .collect();
        let exports = about.exports.clone().unwrap_or_default();
        config["component"] = json!({ "exports": exports, "imports": imports });
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(wat: &str) -> (tempfile::TempDir, Artifact) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool.wasm");
        std::fs::write(&path, wat::parse_str(wat).unwrap()).unwrap();
        let artifacts = Artifacts::read(&path).unwrap();
        assert!(artifacts.attached.is_empty());
        (folder, artifacts.main)
    }

    fn config_of(artifact: &Artifact) -> Value {
        let BlobSource::Bytes(bytes) = &artifact.blobs[1].1 else { panic!("the config is in memory") };
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn a_component_is_described_by_its_imports_and_exports() {
        let wat = r#"(component
            (import "wasi:cli/environment@0.2.6" (instance $env))
            (export "acme:weather/api@1.0.0" (instance $env)))"#;
        let (_folder, one) = artifact(wat);
        let config = config_of(&one);
        assert_eq!((&config["architecture"], &config["os"]), (&json!("wasm"), &json!("wasip2")));
        assert_eq!(config["component"]["imports"], json!(["wasi:cli/environment@0.2.6"]));
        assert_eq!(config["component"]["exports"], json!(["acme:weather/api@1.0.0"]));
        assert_eq!(config["layerDigests"], json!([one.blobs[0].0.digest]));
        let manifest: Value = serde_json::from_slice(&one.manifest.bytes).unwrap();
        assert_eq!(manifest["config"]["mediaType"], WASM_CONFIG);
        assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
        assert_eq!(manifest["layers"][0]["annotations"][TITLE], "tool.wasm");
        assert!(manifest.get("artifactType").is_none());
        let (_folder, again) = artifact(wat);
        assert_eq!(one.manifest.bytes, again.manifest.bytes, "the same component has the same digest");
    }

    #[test]
    fn a_core_module_is_no_component() {
        let (_folder, module) = artifact("(module)");
        let config = config_of(&module);
        assert_eq!(config["os"], "wasip1");
        assert!(config.get("component").is_none());
    }

    #[test]
    fn other_files_are_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        std::fs::write(&path, "{}").unwrap();
        for path in [path.as_path(), folder.path()] {
            let error = Artifacts::read(path).map(|_| ()).unwrap_err();
            assert!(error.downcast_ref::<Advice>().unwrap().hint().contains("bundle pack"), "{error:?}");
        }
    }
}
