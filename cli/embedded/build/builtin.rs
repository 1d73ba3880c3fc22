//! Packs the shipped tools into the bundle that the program embeds: the files of the crib, byte for byte.

use std::env;
use std::path::Path;

use toolcrib_bundle::{BundleBuilder, MediaType, Metadata};
use toolcrib_programs::{MANIFEST, Programs};

use super::{PROGRAMS, replace};

/// Name of the bundle.
const NAME: &str = "toolcrib/builtin";
/// Name of the tar file in the output folder.
const FILE: &str = "builtin.tar";

/// Writes the bundle of a manifest and its programs; an empty file without them. Passes the path of the file and the digest of
/// the bundle to the program.
pub(super) fn pack(tools: Option<(Vec<u8>, Programs)>, out: &Path) -> Result<(), String> {
    let (bytes, digest) = match tools {
        Some((manifest, programs)) => bundle(manifest, programs)?,
        None => (Vec::new(), String::new()),
    };
    let file = out.join(FILE);
    replace(&file, &bytes)?;
    println!("cargo::rustc-env=TOOLCRIB_BUILTIN={}", file.display());
    println!("cargo::rustc-env=TOOLCRIB_BUILTIN_DIGEST={digest}");
    Ok(())
}

/// Returns the tar file of the tools, and the digest of its manifest.
fn bundle(manifest: Vec<u8>, programs: Programs) -> Result<(Vec<u8>, String), String> {
    let mut files = vec![(MANIFEST.to_owned(), MediaType::TOOLS_JSON, manifest)];
    files.extend(
        programs.into_iter().map(|(name, program)| (format!("{PROGRAMS}/{name}.wasm"), MediaType::WASM, program)),
    );
    let version = env::var("CARGO_PKG_VERSION").map_err(|error| format!("`CARGO_PKG_VERSION`: {error}"))?;
    let failed = |error: toolcrib_bundle::Error| format!("cannot pack the built-in tools: {error}");
    let mut builder = BundleBuilder::new(Metadata::new(NAME, version)).map_err(failed)?;
    for (path, media_type, bytes) in files {
        builder.add_bytes(&path, media_type, bytes).map_err(failed)?;
    }
    let mut tar = Vec::new();
    let written = builder.write_to(&mut tar).map_err(failed)?;
    Ok((tar, written.manifest.to_string()))
}
