//! The hash chain of the records: the fields at each line's end, and their computation from the previous line. The
//! documentation of the parent module describes the format.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

/// Number of hexadecimal digits in a SHA-256.
const DIGITS: usize = 64;
const SEQ: &[u8] = b",\"seq\":";
const CHAIN: &[u8] = b",\"chain\":\"";
const CLOSE: &[u8] = b"\"}";
/// Maximum length of the two fields that end a line.
pub(super) const MAX_SEAL_LEN: usize = SEQ.len() + 20 + CHAIN.len() + DIGITS + CLOSE.len();
/// Maximum length of a line with its line break. A longer record is refused, so readers need no larger buffer.
pub(super) const MAX_LINE_LEN: usize = 16 << 20;

/// Chain value of a record: a SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain([u8; DIGITS]);

/// The text is not a chain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a chain value: 64 hexadecimal digits")]
pub struct InvalidChain;

/// Position of a record in the chain: its number, counted from 1, and its chain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) chain: Chain,
}

impl Chain {
    /// The value before the first record.
    pub const START: Self = Self([b'0'; DIGITS]);

    /// Computes the chain value of the next record from its line's bytes before `,"chain":`.
    pub(super) fn after(&self, record: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(self.0).chain_update(record).finalize();
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
            for (digit, half) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
                *digit = b"0123456789abcdef"[usize::from(half)];
            }
        }
        Self(digits)
    }

    pub(super) fn digits(&self) -> &[u8; DIGITS] {
        &self.0
    }

    pub(super) fn of_digits(digits: &[u8]) -> Option<Self> {
        let digits: [u8; DIGITS] = digits.try_into().ok()?;
        digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(digits))
    }
}

impl Link {
    /// The position before the first record.
    pub(super) const START: Self = Self { seq: 0, chain: Chain::START };
    /// Maximum accepted number, so that counting does not overflow.
    const MAX_SEQ: u64 = u64::MAX / 2;

    /// Accepts the link of a record that was read; numbers start at 1.
    pub(super) fn new(seq: u64, chain: Chain) -> Option<Self> {
        (1..=Self::MAX_SEQ).contains(&seq).then_some(Self { seq, chain })
    }

    /// Returns the number of the next record.
    pub(super) fn next(&self) -> u64 {
        self.seq + 1
    }

    /// Appends a record, one JSON object, to `line` as the next line of the chain, and returns its link.
    pub(super) fn seal(&self, record: &[u8], line: &mut Vec<u8>) -> Self {
        let start = line.len();
        line.extend_from_slice(record.strip_suffix(b"}").unwrap_or(record));
        line.extend_from_slice(SEQ);
        let seq = self.next();
        // Writing to memory does not fail.
        let _ = write!(line, "{seq}");
        let chain = self.chain.after(&line[start..]);
        for part in [CHAIN, &chain.0, CLOSE, b"\n"] {
            line.extend_from_slice(part);
        }
        Self { seq, chain }
    }
}

/// Splits a line into the bytes that its chain value covers and its link; `None` if the line does not end with both
/// fields.
pub(super) fn parse_sealed(line: &[u8]) -> Option<(&[u8], Link)> {
    let (rest, chain) = line.strip_suffix(CLOSE)?.split_last_chunk::<DIGITS>()?;
    let covered = rest.strip_suffix(CHAIN)?;
    let digits = covered.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, number) = covered.split_at(covered.len() - digits);
    before.strip_suffix(SEQ)?;
    let seq = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((covered, Link::new(seq, Chain::of_digits(chain)?)?))
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Chain {
    type Err = InvalidChain;

    fn from_str(text: &str) -> Result<Self, InvalidChain> {
        Self::of_digits(text.to_ascii_lowercase().as_bytes()).ok_or(InvalidChain)
    }
}

impl Serialize for Chain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_its_link_and_the_chain_is_plain_sha_256() {
        let mut line = Vec::new();
        let link = Link::START.seal(br#"{"a":1}"#, &mut line);
        let covered = br#"{"a":1,"seq":1"#;
        assert_eq!(line, format!("{{\"a\":1,\"seq\":1,\"chain\":\"{}\"}}\n", link.chain).as_bytes());
        assert_eq!(parse_sealed(line.trim_ascii_end()), Some((covered.as_slice(), link)));
        // printf '%064d%s' 0 '{"a":1,"seq":1' | sha256sum
        assert_eq!(link.chain.to_string(), SUM);
        assert_eq!(SUM.to_ascii_uppercase().parse(), Ok(link.chain));
        assert!(line.len() - 7 < MAX_SEAL_LEN);
    }

    const SUM: &str = "8994f4ece8de92cb7d52d9461e501111abfc1c4b64b88011b6d6fa990fb3f6e3";

    #[test]
    fn a_line_that_does_not_end_with_both_fields_has_no_link() {
        let zeros = "0".repeat(64);
        for line in [
            "",
            "\"}",
            &format!("{zeros}\"}}"),
            &format!("{{\"a\":1,\"chain\":\"{zeros}\"}}"),
            &format!("{{\"a\":1,\"seq\":,\"chain\":\"{zeros}\"}}"),
            &format!("{{\"a\":1,\"seq\":0,\"chain\":\"{zeros}\"}}"),
            &format!("{{\"a\":1,\"seq\":-1,\"chain\":\"{zeros}\"}}"),
            &format!("{{\"a\":1,\"seq\":{},\"chain\":\"{zeros}\"}}", u64::MAX),
            &format!("{{\"a\":1,\"seq\":99999999999999999999999,\"chain\":\"{zeros}\"}}"),
            &format!("{{\"a\":1,\"seq\":1,\"chain\":\"{}g\"}}", &zeros[1..]),
            &format!("{{\"a\":1,\"seq\":1,\"chain\":\"{zeros}\"}}}}"),
        ] {
            assert_eq!(parse_sealed(line.as_bytes()), None, "{line}");
        }
    }
}
