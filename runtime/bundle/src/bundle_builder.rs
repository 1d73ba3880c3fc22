//! Writing of bundles from files, tools and metadata.

use std::io::{Cursor, Write};

use crate::archive::{MAX_DOCUMENT_SIZE, check_reference};
use crate::archive_builder::{ArchiveBuilder, BlobSource, ExaminedBlob, WrittenArchive};
use crate::bundle::MAX_LAYERS;
use crate::config::{BundledFile, BundledTool, Config, Metadata};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::media_type::{BUNDLE_ARTIFACT_TYPE, BUNDLE_CONFIG, MediaType};
use crate::oci::{Descriptor, Manifest, TITLE};
use crate::path::{BundlePath, PathSet};
use crate::program;

/// File extension of the engine's precompiled programs.
const PRECOMPILED: &str = ".cwasm";

/// Digests of a written bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenBundle {
    /// Digest of the manifest, which names the bundle in registries, locks and signatures.
    pub manifest: Digest,
    /// Digest of the config.
    pub config: Digest,
    /// Digest and size of the tar file.
    pub archive: WrittenArchive,
}

/// Builder of a bundle.
///
/// The output depends on the added content and the order of sources alone: not on the order of other additions, the time, the locale, the user or any path of
/// the host.
pub struct BundleBuilder<'a> {
    metadata: Metadata,
    ref_name: String,
    paths: PathSet,
    files: Vec<BundledFile>,
    tools: Vec<BundledTool>,
    sources: Vec<BundlePath>,
    archive: ArchiveBuilder<'a>,
}

impl<'a> BundleBuilder<'a> {
    /// Returns a builder without files.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Text`] or [`Error::Document`] for invalid metadata, and [`Error::Reference`] for a version that is no ref
    /// name.
    pub fn new(metadata: Metadata) -> Result<Self> {
        metadata.check()?;
        let ref_name = metadata.version.replace('+', "_");
        check_reference(&ref_name)?;
        Ok(Self {
            metadata,
            ref_name,
            paths: PathSet::default(),
            files: Vec::new(),
            tools: Vec::new(),
            sources: Vec::new(),
            archive: ArchiveBuilder::new(),
        })
    }

    /// Sets the ref name in the index. By default it is the version, with `_` for `+`, as registries accept it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Reference`] for an invalid ref name.
    pub fn set_ref_name(&mut self, name: &str) -> Result<()> {
        check_reference(name)?;
        self.ref_name = name.to_owned();
        Ok(())
    }

    /// Adds a file in memory. See [`BundleBuilder::add_source`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BundleBuilder::add_source`].
    pub fn add_bytes(&mut self, path: &str, media_type: MediaType, bytes: impl AsRef<[u8]> + 'a) -> Result<Digest> {
        let size = bytes.as_ref().len() as u64;
        self.add_source(path, media_type, size, Cursor::new(bytes))
    }

    /// Adds a file of `size` bytes, reads it once, and returns its digest. The source is read again by
    /// [`BundleBuilder::write_to`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Path`] and [`Error::PathCollision`] for paths that are not portable, [`Error::Program`] for native or
    /// precompiled code, [`Error::SourceSize`] for another size, [`Error::TooLarge`] and [`Error::TooManyLayers`] if a bound is
    /// exceeded, and [`Error::Io`] if reading fails.
    pub fn add_source(
        &mut self,
        path: &str,
        media_type: MediaType,
        size: u64,
        source: impl BlobSource + 'a,
    ) -> Result<Digest> {
        if self.files.len() == MAX_LAYERS {
            return Err(Error::TooManyLayers);
        }
        let path = BundlePath::new(path)?;
        let refuse = |fault| Error::Program { file: path.to_string(), fault };
        if path.as_str().to_lowercase().ends_with(PRECOMPILED) {
            return Err(refuse(program::ProgramFault::Native { format: "a precompiled program" }));
        }
        let blob = ExaminedBlob::new(size, source).map_err(|error| match error {
            Error::SourceSize { size, .. } => Error::SourceSize { path: path.to_string(), size },
            Error::TooLarge { size, max, .. } => Error::TooLarge { document: path.to_string(), size, max },
            other => other,
        })?;
        program::check(&media_type, &blob.prefix).map_err(refuse)?;
        self.paths.insert(&path).map_err(|other| Error::PathCollision { path: path.clone(), other })?;
        let digest = self.archive.add_examined(blob);
        self.files.push(BundledFile { path, media_type, digest, size });
        Ok(digest)
    }

    /// Adds a tool to the list in the config. Its files may be added later.
    pub fn add_tool(&mut self, tool: BundledTool) {
        self.tools.push(tool);
    }

    /// Adds a file or folder of the bundle that defines tools. Sources are read in the order in which they are added; a bundle
    /// without any is read as one folder.
    pub fn add_source_path(&mut self, path: BundlePath) {
        self.sources.push(path);
    }

    /// Writes the bundle as a tar file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Document`] or [`Error::Text`] if a tool is invalid, if a tool or a source occurs twice or names a file
    /// that is not in the bundle, and the errors of [`ArchiveBuilder::write_to`].
    pub fn write_to(mut self, writer: impl Write) -> Result<WrittenBundle> {
        let annotations = self.metadata.manifest_annotations();
        let config = Config::new(self.metadata, self.tools, self.files, self.sources)?;
        let config_bytes = config.to_json()?;
        let config_size = config_bytes.len() as u64;
        Error::check_size(|| "the config of the bundle".to_owned(), config_size, MAX_DOCUMENT_SIZE)?;
        let config_digest = self.archive.add_bytes(config_bytes)?;
        let layers = config.files.into_iter().map(layer).collect();
        let config = Descriptor::new(BUNDLE_CONFIG.parse()?, config_digest, config_size);
        let mut manifest = Manifest::new(BUNDLE_ARTIFACT_TYPE, config, layers);
        manifest.annotations = annotations;
        let manifest = self.archive.add_manifest(manifest.to_json()?, Some(&self.ref_name))?;
        let archive = self.archive.write_to(writer)?;
        Ok(WrittenBundle { manifest: manifest.digest, config: config_digest, archive })
    }
}

/// Returns the layer of a file.
fn layer(file: BundledFile) -> Descriptor {
    let mut layer = Descriptor::new(file.media_type, file.digest, file.size);
    layer.annotations.insert(TITLE.to_owned(), file.path.to_string());
    layer
}
