//! Compresses files that the program contains.

use std::path::Path;

use miniz_oxide::deflate::compress_to_vec_zlib;

use super::replace;

/// Level of the compression: higher ones take several times longer for a hundredth of the size.
const LEVEL: u8 = 8;

/// Writes the compressed bytes to `NAME.zlib`, and their number before the compression to `NAME.size`.
pub(super) fn write(bytes: &[u8], out: &Path, name: &str) -> Result<(), String> {
    replace(&out.join(format!("{name}.zlib")), &compress_to_vec_zlib(bytes, LEVEL))?;
    replace(&out.join(format!("{name}.size")), bytes.len().to_string().as_bytes())
}
