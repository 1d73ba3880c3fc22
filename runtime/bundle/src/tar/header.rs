//! One tar header of 512 bytes: strict parsing and deterministic writing.

use super::error::TarFault;
use crate::digest::Digest;

/// Size of a block in bytes.
pub(crate) const BLOCK: usize = 512;

/// Header fields as ranges of bytes, named as in POSIX.1-1988 (ustar).
mod field {
    use std::ops::Range;

    pub(super) const NAME: Range<usize> = 0..100;
    pub(super) const MODE: Range<usize> = 100..108;
    pub(super) const UID: Range<usize> = 108..116;
    pub(super) const GID: Range<usize> = 116..124;
    pub(super) const SIZE: Range<usize> = 124..136;
    pub(super) const MTIME: Range<usize> = 136..148;
    pub(super) const CHECKSUM: Range<usize> = 148..156;
    pub(super) const TYPE: usize = 156;
    pub(super) const LINK_NAME: Range<usize> = 157..257;
    pub(super) const MAGIC: Range<usize> = 257..265;
    pub(super) const DEVICE: Range<usize> = 329..345;
    pub(super) const PREFIX: Range<usize> = 345..512;
}

/// Magic and version of POSIX headers.
const POSIX: &[u8; 8] = b"ustar\x0000";
/// Magic and version of GNU headers.
const GNU: &[u8; 8] = b"ustar  \0";

/// Entry name in an OCI image layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// Directory `blobs/`.
    Blobs,
    /// Directory `blobs/sha256/`.
    Sha256,
    /// File `blobs/sha256/DIGEST`.
    Blob(Digest),
    /// File `index.json`.
    Index,
    /// File `manifest.json`, which Docker adds and OCI tools ignore.
    DockerManifest,
    /// File `oci-layout`.
    Layout,
}

impl Name {
    /// Returns the entry with exactly this name.
    fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"blobs/" => Some(Self::Blobs),
            b"blobs/sha256/" => Some(Self::Sha256),
            b"index.json" => Some(Self::Index),
            b"manifest.json" => Some(Self::DockerManifest),
            b"oci-layout" => Some(Self::Layout),
            _ => Digest::from_hex(name.strip_prefix(b"blobs/sha256/")?).map(Self::Blob),
        }
    }

    /// Returns `true` for the two directories.
    pub(super) fn is_directory(self) -> bool {
        matches!(self, Self::Blobs | Self::Sha256)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blobs => f.write_str("blobs/"),
            Self::Sha256 => f.write_str("blobs/sha256/"),
            Self::Blob(digest) => write!(f, "blobs/sha256/{}", digest.hex()),
            Self::Index => f.write_str("index.json"),
            Self::DockerManifest => f.write_str("manifest.json"),
            Self::Layout => f.write_str("oci-layout"),
        }
    }
}

/// Parsed header of an entry that is allowed in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Name of the entry.
    pub(super) name: Name,
    /// Size of the data in bytes; 0 for directories.
    pub(super) size: u64,
}

impl Header {
    /// Parses a header. Owner, mode and time are ignored.
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Self, TarFault> {
        if octal(&block[field::CHECKSUM]) != Some(checksum(block)) {
            return Err(TarFault::Checksum);
        }
        let (raw, rest) = split_at_nul(&block[field::NAME]);
        let shown = || raw.escape_ascii().to_string();
        if block[field::MAGIC] != *POSIX && block[field::MAGIC] != *GNU {
            return Err(TarFault::Format);
        }
        let is_directory = match block[field::TYPE] {
            b'0' | 0 => false,
            b'5' => true,
            other => return Err(TarFault::EntryType { name: shown(), kind: kind(other) }),
        };
        for (field, bytes) in
            [("name", rest), ("linkname", &block[field::LINK_NAME]), ("prefix", &block[field::PREFIX])]
        {
            if bytes.iter().any(|byte| *byte != 0) {
                return Err(TarFault::Field { name: shown(), field });
            }
        }
        if block[field::DEVICE].iter().any(|byte| !matches!(byte, 0 | b' ' | b'0')) {
            return Err(TarFault::Field { name: shown(), field: "device" });
        }
        let name = Name::parse(raw).filter(|name| name.is_directory() == is_directory);
        let name = name.ok_or_else(|| TarFault::Name { name: shown() })?;
        if block[field::SIZE.start] & 0x80 != 0 {
            return Err(TarFault::SizeBase256 { name: shown() });
        }
        let size = octal(&block[field::SIZE]).ok_or_else(|| TarFault::SizeSyntax { name: shown() })?;
        if is_directory && size != 0 {
            return Err(TarFault::DirectoryContent { name: shown(), size });
        }
        Ok(Self { name, size })
    }

    /// Writes the header of a file or directory with a fixed mode, owner and time.
    pub(super) fn to_block(self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let name = self.name.to_string();
        block[..name.len()].copy_from_slice(name.as_bytes());
        put_octal(&mut block[field::MODE], if self.name.is_directory() { 0o755 } else { 0o644 });
        for field in [field::UID, field::GID, field::MTIME] {
            put_octal(&mut block[field], 0);
        }
        put_octal(&mut block[field::SIZE], self.size);
        put_octal(&mut block[field::DEVICE.start..field::DEVICE.start + 8], 0);
        put_octal(&mut block[field::DEVICE.start + 8..field::DEVICE.end], 0);
        block[field::TYPE] = if self.name.is_directory() { b'5' } else { b'0' };
        block[field::MAGIC].copy_from_slice(POSIX);
        let sum = checksum(&block);
        put_octal(&mut block[field::CHECKSUM.start..field::CHECKSUM.end - 1], sum);
        block[field::CHECKSUM.end - 1] = b' ';
        block
    }
}

/// Returns the sum of a header's bytes, with spaces instead of the checksum.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..field::CHECKSUM.start]) + 8 * u64::from(b' ') + sum(&block[field::CHECKSUM.end..])
}

/// Parses an octal number: optional spaces, at least one digit, then only spaces and NUL bytes.
fn octal(field: &[u8]) -> Option<u64> {
    let start = field.iter().position(|byte| *byte != b' ')?;
    let digits = field[start..].iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let rest = &field[start + digits..];
    if digits == 0 || rest.iter().any(|byte| !matches!(byte, b' ' | 0)) {
        return None;
    }
    field[start..start + digits]
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(8)?.checked_add(u64::from(digit - b'0')))
}

/// Fills a field with octal digits and a NUL byte. The value fits: sizes are at most [`super::MAX_BLOB_SIZE`].
fn put_octal(field: &mut [u8], mut value: u64) {
    if let Some((end, digits)) = field.split_last_mut() {
        *end = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (value & 7) as u8;
            value >>= 3;
        }
    }
}

/// Splits a field at its first NUL byte.
fn split_at_nul(field: &[u8]) -> (&[u8], &[u8]) {
    field.split_at(field.iter().position(|byte| *byte == 0).unwrap_or(field.len()))
}

/// Describes a refused type of entry.
fn kind(type_flag: u8) -> &'static str {
    match type_flag {
        b'1' => "a hard link",
        b'2' => "a symbolic link",
        b'3' => "a character device",
        b'4' => "a block device",
        b'6' => "a FIFO",
        b'7' => "a contiguous file",
        b'g' => "a global extended header (pax)",
        b'x' | b'X' => "an extended header (pax)",
        b'L' => "a long name (GNU)",
        b'K' => "a long link name (GNU)",
        b'S' => "a sparse file (GNU)",
        b'D' => "a directory listing (GNU)",
        b'M' => "the continuation of a file (GNU)",
        b'V' => "a volume label (GNU)",
        _ => "an entry of unknown type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_is_parsed_again() {
        let digest = Digest::of(b"x");
        for name in [Name::Blobs, Name::Sha256, Name::Blob(digest), Name::Index, Name::DockerManifest, Name::Layout] {
            let header = Header { name, size: if name.is_directory() { 0 } else { 0o7777 } };
            assert_eq!(Header::parse(&header.to_block()), Ok(header));
        }
    }

    #[test]
    fn octal_fields_hold_digits_between_spaces_and_nul_bytes_only() {
        assert_eq!(octal(b"0000017\0"), Some(15));
        assert_eq!(octal(b"   17 \0\0"), Some(15));
        assert_eq!(octal(b"77777777777 "), Some((1 << 33) - 1));
        for field in [
            &b"        "[..],
            b"\0\0\0\0",
            b"18\0",
            b"-1\0",
            b"+1\0",
            b"1 1\0",
            b"\x001",
            b"0x1\0",
            b"7777777777777777777777777",
        ] {
            assert_eq!(octal(field), None, "{}", field.escape_ascii());
        }
    }

    #[test]
    fn every_bit_of_a_header_is_covered_by_its_checksum() {
        let header = Header { name: Name::Blob(Digest::of(b"x")), size: 1234 };
        let block = header.to_block();
        for bit in 0..BLOCK * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Only the terminator of the checksum itself has two spellings.
            let parsed = Header::parse(&flipped);
            assert!(parsed.is_err() || parsed == Ok(header), "bit {bit}");
        }
    }
}
