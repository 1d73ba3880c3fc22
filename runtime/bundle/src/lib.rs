//! Bundles of tools: one tar file with an OCI image layout, which other OCI tools read too.
//!
//! [`BundleBuilder`] writes a bundle, byte for byte the same for the same content. [`Bundle`] reads one without unpacking it.
//! [`Archive`] and [`ArchiveBuilder`] are the level below: any OCI artifacts, such as signatures that are attached to a bundle.
//!
//! # Layout
//!
//! | entry | content |
//! |---|---|
//! | `blobs/sha256/DIGEST` | manifest, config and files, each under the digest of its content |
//! | `index.json` | descriptor of the manifest, with its ref name |
//! | `oci-layout` | version of the layout |
//!
//! The manifest has the artifact type [`BUNDLE_ARTIFACT_TYPE`]. Its config ([`BUNDLE_CONFIG`]) holds [`Metadata`], the list of
//! [`BundledTool`]s, the list of [`BundledFile`]s and the paths that define the tools ([`Bundle::sources`]). Each layer is one file; its annotation [`TITLE`] is the path inside the
//! bundle. WebAssembly artifacts of other tools, with a config of type [`WASM_CONFIG`] and one layer, are read through the same
//! interface.
//!
//! # Trust
//!
//! Nothing in a bundle is trusted. The archive may contain nothing but the entries above; every size, count and depth is
//! bounded; every blob is compared with its digest on every read, so that a file that another process changes causes an error
//! and never other content. `index.json` has no digest: pin [`Bundle::digest`], not the ref name. Programs are portable
//! WebAssembly: native and precompiled code is neither written nor read.
//!
//! ```
//! use toolcrib_bundle::{BundleBuilder, BundledTool, MediaType, Metadata, open_bytes};
//!
//! # fn main() -> toolcrib_bundle::Result<()> {
//! let program = b"\0asm\x0d\0\x01\0";
//! let mut builder = BundleBuilder::new(Metadata::new("acme/weather", "1.2.0"))?;
//! builder.add_bytes("tools/weather.wasm", MediaType::WASM, program)?;
//! builder.add_tool(BundledTool::new("weather", "tools/weather.wasm".parse()?));
//! let mut file = Vec::new();
//! let written = builder.write_to(&mut file)?;
//!
//! let mut bundle = open_bytes(&file)?;
//! assert_eq!(bundle.digest(), written.manifest);
//! assert_eq!(bundle.read_file("tools/weather.wasm")?.into_vec(1 << 20)?, program);
//! # Ok(()) }
//! ```

mod archive;
mod archive_builder;
mod blob;
mod bundle;
mod bundle_builder;
mod config;
mod digest;
mod error;
mod json;
mod media_type;
mod oci;
mod path;
mod program;
mod sbom;
mod tar;
mod text;

pub use archive::{
    Archive, MAX_DOCUMENT_SIZE, MAX_INDEX_SIZE, MAX_LAYOUT_SIZE, MAX_MANIFESTS, MAX_REFERENCE_LENGTH, ManifestEntry,
    Selector,
};
pub use archive_builder::{ArchiveBuilder, BlobSource, WrittenArchive};
pub use blob::{BlobReader, FileReader};
pub use bundle::{Bundle, BundleKind, MAX_LAYERS, open_bytes};
pub use bundle_builder::{BundleBuilder, WrittenBundle};
pub use config::{BundledFile, BundledTool, MAX_ANNOTATIONS, MAX_SOURCES, MAX_TOOLS, Metadata};
pub use digest::{Digest, DigestError};
pub use error::{Error, Result};
pub use json::{JsonError, MAX_JSON_DEPTH, MAX_JSON_VALUES};
pub use media_type::{
    BUNDLE_ARTIFACT_TYPE, BUNDLE_CONFIG, MediaType, MediaTypeError, OCI_INDEX, OCI_MANIFEST, WASM_CONFIG,
};
pub use oci::{Annotations, Descriptor, Manifest, REF_NAME, TITLE};
pub use path::{BundlePath, MAX_PATH_COMPONENTS, MAX_PATH_LENGTH, PathError, PathFault};
pub use program::{ProgramFault, ProgramKind, program_kind};
pub use sbom::{MAX_SBOM_COMPONENTS, Sbom, SbomComponent, SbomKind};
pub use tar::{
    ARCHIVE_PREFIX, MAX_ARCHIVE_SIZE, MAX_BLOB_SIZE, MAX_ENTRIES, MAX_TRAILING_ZEROS, TarError, TarFault,
    looks_like_archive,
};
pub use text::{MAX_KEY_LENGTH, MAX_TEXT_LENGTH, TextError, TextFault, visible};
