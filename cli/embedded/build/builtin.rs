//! Packs the shipped tools into the bundle that the program embeds: the files of the crib, byte for byte. The tar file is
//! compressed, except a copy of everything in it that is small, which is compared for each call.

use std::env;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use toolcrib_bundle::{BundleBuilder, Digest, MediaType, Metadata};
use toolcrib_programs::{MANIFEST, Programs};

use super::{PROGRAMS, compressed, replace};

/// Name of the bundle.
const NAME: &str = "toolcrib/builtin";
/// Size of a block of a tar file: entries begin at its multiples, each with a header of one block.
const BLOCK: usize = 512;
/// Position of the size of an entry in its header, in octal digits.
const SIZE: Range<usize> = 124..135;
/// Maximum size of an entry in the outline: the documents of the bundle are smaller, nearly all programs larger.
const MAX_OUTLINED: usize = 64 << 10;

/// Writes the bundle of a manifest and its programs, and its outline; empty files without them. Passes the digests of the bundle
/// and of its tar file to the program.
pub(super) fn pack(tools: Option<(Vec<u8>, Programs)>, out: &Path) -> Result<(), String> {
    let (bytes, digest) = match tools {
        Some((manifest, programs)) => bundle(manifest, programs)?,
        None => (Vec::new(), String::new()),
    };
    compressed::write(&bytes, out, "builtin")?;
    println!("cargo::rustc-env=TOOLCRIB_BUILTIN_DIGEST={digest}");
    println!("cargo::rustc-env=TOOLCRIB_BUILTIN_TAR_DIGEST={}", Digest::of(&bytes));
    let mut list = String::new();
    for (index, range) in outline(&bytes).into_iter().enumerate() {
        let file = out.join(format!("outline-{index}"));
        replace(&file, &bytes[range.clone()])?;
        let _ = writeln!(list, "({}, include_bytes!({file:?}) as &[u8]),", range.start);
    }
    replace(&out.join("outline.rs"), format!("[{list}]").as_bytes())
}

/// Returns the ranges of a tar file without the content of its large entries.
fn outline(tar: &[u8]) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(header) = tar.get(at..at + BLOCK) {
        let digits = std::str::from_utf8(&header[SIZE]).unwrap_or_default();
        let size = usize::from_str_radix(digits.trim_end_matches('\0'), 8).unwrap_or_default();
        let content = at + BLOCK;
        if size > MAX_OUTLINED {
            ranges.push(start..content);
            start = content + size;
        }
        at = content + size.next_multiple_of(BLOCK);
    }
    ranges.push(start..tar.len());
    ranges
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
