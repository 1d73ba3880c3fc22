//! A selected bundle: its metadata, tools and files, whether it was written by this crate or is a WebAssembly artifact.

use std::fs::File;
use std::io::{Cursor, Read, Seek};

use serde::Deserialize;
use toolcrib_foundation::text::shown;

use crate::archive::{Archive, MAX_DOCUMENT_SIZE, ManifestEntry, Selector};
use crate::blob::FileReader;
use crate::config::{BundledFile, BundledTool, Config, Metadata};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::media_type::{BUNDLE_ARTIFACT_TYPE, BUNDLE_CONFIG, MediaType, WASM_CONFIG};
use crate::oci::{self, Manifest, TITLE};
use crate::path::{BundlePath, PathSet};
use crate::tar::MAX_BLOB_SIZE;

/// Maximum number of files per bundle.
pub const MAX_LAYERS: usize = 2048;

/// Program path for a WebAssembly artifact that does not state one.
const DEFAULT_PROGRAM: &str = "component.wasm";

/// Format of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleKind {
    /// Bundle of this project, with metadata, tools and any number of files.
    Tools,
    /// WebAssembly artifact of the CNCF layout: one program, and no tools that are known without reading it.
    WasmArtifact,
}

impl BundleKind {
    /// Returns the format of the bundle that a manifest with this digest describes, before any blob is read.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotABundle`] for another artifact, and [`Error::TooManyLayers`].
    pub fn of(digest: Digest, manifest: &Manifest) -> Result<Self> {
        if manifest.layers.len() > MAX_LAYERS {
            return Err(Error::TooManyLayers);
        }
        kind(digest, manifest)
    }
}

/// Bundle in an archive.
#[derive(Debug)]
pub struct Bundle<R> {
    archive: Archive<R>,
    entry: ManifestEntry,
    manifest: Manifest,
    manifest_bytes: Vec<u8>,
    kind: BundleKind,
    metadata: Option<Metadata>,
    tools: Vec<BundledTool>,
    files: Vec<BundledFile>,
    sources: Vec<BundlePath>,
}

impl Bundle<File> {
    /// Opens the only bundle of an archive. Use [`Bundle::select`] for archives with several.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Archive::open`] and [`Bundle::select`].
    pub fn open(file: File) -> Result<Self> {
        Self::select(Archive::open(file)?, &Selector::Only)
    }
}

/// Opens the only bundle of an archive in memory: the entry point for fuzzers.
///
/// # Errors
///
/// Returns the errors of [`Archive::from_reader`] and [`Bundle::select`].
pub fn open_bytes(bytes: &[u8]) -> Result<Bundle<Cursor<&[u8]>>> {
    Bundle::select(Archive::open_bytes(bytes)?, &Selector::Only)
}

impl<R: Read + Seek> Bundle<R> {
    /// Selects a bundle of an archive, and reads its manifest and config.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Archive::select`]; [`Error::NotABundle`] for another artifact; [`Error::BlobMissing`] and
    /// [`Error::BlobSize`] if a file is missing or has another size; [`Error::Path`], [`Error::PathCollision`] and
    /// [`Error::Document`] if paths or config are invalid. Files are not read.
    pub fn select(mut archive: Archive<R>, selector: &Selector) -> Result<Self> {
        let entry = archive.select(selector)?.clone();
        let (manifest, manifest_bytes) = archive.read_manifest(&entry.descriptor)?;
        let digest = entry.descriptor.digest;
        let kind = BundleKind::of(digest, &manifest)?;
        for layer in &manifest.layers {
            archive.check_present(layer)?;
        }
        let files = match kind {
            BundleKind::Tools => layer_files(digest, &manifest)?,
            BundleKind::WasmArtifact => vec![artifact_file(&manifest)],
        };
        let config = archive.read_document("the config of the bundle", &manifest.config, MAX_DOCUMENT_SIZE)?;
        let (metadata, tools, sources) = match kind {
            BundleKind::Tools => {
                let config = Config::parse(&config)?;
                if files != config.files {
                    return Err(Config::invalid("its files are not the layers of the manifest".to_owned()));
                }
                if manifest.annotations != config.metadata.manifest_annotations() {
                    return Err(Config::invalid("its metadata are not the annotations of the manifest".to_owned()));
                }
                (Some(config.metadata), config.tools, config.sources)
            }
            BundleKind::WasmArtifact => {
                oci::parse::<WasmConfig>("the config of the artifact", &config)?.check(&manifest)?;
                (None, Vec::new(), files.iter().map(|file| file.path.clone()).collect())
            }
        };
        Ok(Self { archive, entry, manifest, manifest_bytes, kind, metadata, tools, files, sources })
    }

    /// Returns the format of the bundle.
    #[must_use]
    pub fn kind(&self) -> BundleKind {
        self.kind
    }

    /// Returns the manifest's digest, which names the bundle and all of its content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.entry.descriptor.digest
    }

    /// Returns the ref name in the index. It is not covered by the digest.
    #[must_use]
    pub fn ref_name(&self) -> Option<&str> {
        self.entry.ref_name.as_deref()
    }

    /// Returns the metadata, which WebAssembly artifacts do not have.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Returns the tools as the author listed them, sorted by name as they were written. They are hints: the definitions of
    /// the tools are in the files.
    #[must_use]
    pub fn tools(&self) -> &[BundledTool] {
        &self.tools
    }

    /// Returns the files, sorted by path as they were written.
    #[must_use]
    pub fn files(&self) -> &[BundledFile] {
        &self.files
    }

    /// Returns the files and folders that define tools, in the order in which they are read. Without any, the root of the
    /// bundle does.
    #[must_use]
    pub fn sources(&self) -> &[BundlePath] {
        &self.sources
    }

    /// Returns the file with exactly this path.
    ///
    /// # Errors
    ///
    /// Returns [`Error::FileMissing`] for an unknown path.
    pub fn file(&self, path: &str) -> Result<&BundledFile> {
        let missing = || Error::FileMissing { path: shown(path) };
        self.files.iter().find(|file| file.path.as_str() == path).ok_or_else(missing)
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the bytes of the manifest, which a registry stores unchanged.
    #[must_use]
    pub fn manifest_bytes(&self) -> &[u8] {
        &self.manifest_bytes
    }

    /// Begins to read a file. Its digest is checked before its last byte is handed out, as [`BlobReader`] describes.
    ///
    /// [`BlobReader`]: crate::BlobReader
    ///
    /// # Errors
    ///
    /// Returns [`Error::FileMissing`] for an unknown path, and [`Error::Program`] for native and precompiled code.
    pub fn read_file(&mut self, path: &str) -> Result<FileReader<'_, R>> {
        let file = self.file(path)?;
        let (digest, media_type) = (file.digest, file.media_type.clone());
        FileReader::new(self.archive.read_blob(digest)?, path, &media_type)
    }

    /// Reads manifest, config and all files, and checks their digests and first bytes.
    ///
    /// # Errors
    ///
    /// Returns the first error of reading.
    pub fn verify(&mut self) -> Result<()> {
        self.archive.read_manifest(&self.entry.descriptor)?;
        self.archive.read_document("the config of the bundle", &self.manifest.config, MAX_DOCUMENT_SIZE)?;
        for file in &self.files {
            let blob = self.archive.read_blob(file.digest)?;
            let mut reader = FileReader::new(blob, file.path.as_str(), &file.media_type)?;
            std::io::copy(&mut reader, &mut std::io::sink())?;
        }
        Ok(())
    }

    /// Returns the archive of the bundle, to read blobs by digest or to find its referrers.
    pub fn archive(&mut self) -> &mut Archive<R> {
        &mut self.archive
    }

    /// Returns the archive, to select another bundle.
    #[must_use]
    pub fn into_archive(self) -> Archive<R> {
        self.archive
    }
}

/// Returns the format of the bundle that a manifest describes.
fn kind(digest: Digest, manifest: &Manifest) -> Result<BundleKind> {
    let refuse = |reason: String| Err(Error::NotABundle { digest, reason });
    let config = manifest.config.media_type.as_str();
    match (manifest.artifact_type.as_deref(), config) {
        (Some(BUNDLE_ARTIFACT_TYPE), BUNDLE_CONFIG) => Ok(BundleKind::Tools),
        (Some(BUNDLE_ARTIFACT_TYPE), _) | (_, BUNDLE_CONFIG) => {
            refuse(format!("artifact type and config media type `{config}` contradict one another"))
        }
        (_, WASM_CONFIG) => match manifest.layers.as_slice() {
            [layer] if layer.media_type == MediaType::WASM => Ok(BundleKind::WasmArtifact),
            _ => refuse("a WebAssembly artifact has exactly one layer, of media type `application/wasm`".to_owned()),
        },
        _ => refuse(format!("the media type of its config is `{config}`")),
    }
}

/// Returns the files that the layers of a bundle describe, in their order.
fn layer_files(digest: Digest, manifest: &Manifest) -> Result<Vec<BundledFile>> {
    let mut paths = PathSet::default();
    let mut files = Vec::with_capacity(manifest.layers.len());
    for layer in &manifest.layers {
        let title = layer.annotations.get(TITLE);
        let title = title.ok_or_else(|| Error::NotABundle { digest, reason: "a layer has no title".to_owned() })?;
        let path = BundlePath::new(title)?;
        paths.insert(&path).map_err(|other| Error::PathCollision { path: path.clone(), other })?;
        Error::check_size(|| path.to_string(), layer.size, MAX_BLOB_SIZE)?;
        files.push(BundledFile { path, media_type: layer.media_type.clone(), digest: layer.digest, size: layer.size });
    }
    Ok(files)
}

/// Returns the only file of a WebAssembly artifact, under its title if that is a valid path.
fn artifact_file(manifest: &Manifest) -> BundledFile {
    let layer = &manifest.layers[0];
    let title = layer.annotations.get(TITLE).and_then(|title| BundlePath::new(title).ok());
    let path = title.unwrap_or_else(|| BundlePath::from_valid(DEFAULT_PROGRAM));
    BundledFile { path, media_type: layer.media_type.clone(), digest: layer.digest, size: layer.size }
}

/// Config of a WebAssembly artifact. Its lists of imports and exports are not used: they are read from the program.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig {
    architecture: String,
    os: String,
    layer_digests: Option<Vec<Digest>>,
}

impl WasmConfig {
    /// Checks the config against its manifest.
    fn check(&self, manifest: &Manifest) -> Result<()> {
        let invalid = |reason: &str| Err(Error::document("the config of the artifact", reason));
        if self.architecture != "wasm" {
            return invalid("`architecture` is not `wasm`");
        }
        // A later version of WASI is for the engine to judge, from the imports of the program.
        if !self.os.starts_with("wasip") {
            return invalid("`os` is not a WASI version such as `wasip2`");
        }
        match &self.layer_digests {
            Some(digests) if !digests.iter().eq(manifest.layers.iter().map(|layer| &layer.digest)) => {
                invalid("`layerDigests` are not the digests of the layers")
            }
            _ => Ok(()),
        }
    }
}
