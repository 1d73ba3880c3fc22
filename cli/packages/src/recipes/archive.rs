//! Files in a package of npm: a tar file, compressed with gzip. Only the content of one file is used, and only if it has the digest
//! that a recipe names.

use anyhow::{Context, anyhow, ensure};
use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// Maximum size of the files of a package in bytes.
const MAX_FILES: usize = 512 << 20;
/// First bytes of a gzip file.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// Length of the fixed part of its header.
const HEADER_LEN: usize = 10;
/// Bit of the header for a check of the header.
const HAS_CHECK: u8 = 1 << 1;
/// Bit of the header for extra fields.
const HAS_EXTRA: u8 = 1 << 2;
/// Bits of the header for the name of the file and a comment: each ends with a zero byte.
const TEXTS: [u8; 2] = [1 << 3, 1 << 4];
/// Length of a block of a tar file.
const BLOCK: usize = 512;

/// Returns a file of a package. Every path in the package is below one folder, which `path` leaves out.
///
/// # Errors
///
/// The bytes are no such archive, its files are too large, or it has no such file.
pub(super) fn file(package: &[u8], path: &str) -> anyhow::Result<Vec<u8>> {
    let files = decompressed(package)?;
    let mut rest = files.as_slice();
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = number(&header[124..136]).context("the package is not a tar file")?;
        let content = after.get(..size).context("the package ends in the middle of a file")?;
        let is_file = matches!(header[156], b'0' | 0);
        if is_file && name(header).split_once('/').is_some_and(|(_, inner)| inner == path) {
            return Ok(content.to_vec());
        }
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
    Err(anyhow!("the package has no file `{path}`"))
}

fn decompressed(package: &[u8]) -> anyhow::Result<Vec<u8>> {
    let cut = || anyhow!("the package is cut");
    ensure!(package.starts_with(&GZIP), "the package is not a gzip file");
    let flags = *package.get(3).ok_or_else(cut)?;
    let mut at = HEADER_LEN;
    if flags & HAS_EXTRA != 0 {
        let length = package.get(at..at + 2).ok_or_else(cut)?;
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for _ in TEXTS.into_iter().filter(|text| flags & text != 0) {
        let rest = package.get(at..).ok_or_else(cut)?;
        at += rest.iter().position(|byte| *byte == 0).ok_or_else(cut)? + 1;
    }
    at += if flags & HAS_CHECK != 0 { 2 } else { 0 };
    let compressed = package.get(at..).ok_or_else(cut)?;
    decompress_to_vec_with_limit(compressed, MAX_FILES).map_err(|error| anyhow!("the package cannot be read: {error}"))
}

/// Returns the octal number in a field of a header.
fn number(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?;
    usize::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// Returns the path in a header.
fn name(header: &[u8]) -> String {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    let has_prefix = header[257..].starts_with(b"ustar") && !prefix.is_empty();
    if has_prefix { format!("{prefix}/{name}") } else { name }
}

#[cfg(test)]
pub(super) mod tests {
    use miniz_oxide::deflate::compress_to_vec;

    use super::*;

    /// Creates a package of npm with these files.
    pub(crate) fn package(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (path, content) in files {
            let mut header = [0; BLOCK];
            header[..path.len()].copy_from_slice(path.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            header[156] = b'0';
            header[257..262].copy_from_slice(b"ustar");
            tar.extend(header);
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        tar.resize(tar.len() + 2 * BLOCK, 0);
        let mut gzip = vec![0x1f, 0x8b, 8, 1 << 3, 0, 0, 0, 0, 0, 3];
        gzip.extend_from_slice(b"name.tar\0");
        gzip.extend(compress_to_vec(&tar, 6));
        gzip
    }

    #[test]
    fn a_file_is_found_by_its_path_below_the_folder_of_the_package() {
        let package = package(&[("package/a.wasm", b"1"), ("package/lib/a.wasm", &[7; 1000]), ("other/b", b"2")]);
        assert_eq!(file(&package, "lib/a.wasm").unwrap(), [7; 1000]);
        assert_eq!(file(&package, "a.wasm").unwrap(), b"1");
        for path in ["package/a.wasm", "c", "", "../a.wasm"] {
            let error = file(&package, path).unwrap_err().to_string();
            assert_eq!(error, format!("the package has no file `{path}`"));
        }
    }

    #[test]
    fn what_is_no_package_is_an_error_at_every_length() {
        let whole = package(&[("package/a.wasm", &[7; 3000])]);
        for length in 0..whole.len() - 8 {
            assert!(file(&whole[..length], "b").is_err(), "{length}");
        }
        let mut noise = vec![0x1f, 0x8b, 8, 0xff];
        noise.extend((0..2000_u32).map(|n| ((n * 7919) >> 3) as u8));
        assert!(file(&noise, "a").is_err());
        let huge = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &compress_to_vec(&vec![0; MAX_FILES + 1], 1)].concat();
        assert!(file(&huge, "a").unwrap_err().to_string().contains("cannot be read"));
    }
}
