//! Search for secrets in data from outside: in text, where they are masked, and in byte streams, which are cut before
//! any part of a secret is passed on.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use regex::bytes::{Regex, RegexBuilder};

use crate::error::Error;
use crate::schema::step;

use super::encodings;

/// Replacement text for a secret.
pub(crate) const MASK: &str = "***REDACTED***";
/// Maximum memory of one expression and its states; sufficient for the longest secret.
const MAX_REGEX_BYTES: usize = 256 << 20;
const MAX_DFA_BYTES: usize = 8 << 20;
/// Minimum length of a part that is searched without interruption.
const MIN_PART_LEN: usize = 64 << 10;

/// Searches for secrets in their common encodings.
#[derive(Clone, Default)]
pub(crate) struct Scanner {
    needles: Vec<Arc<Needle>>,
    /// Maximum length of a match.
    max_match_len: usize,
}

/// Compiled search for one secret. Compilation takes megabytes and milliseconds, so it is done once and shared.
pub(crate) struct Needle {
    name: Arc<str>,
    regex: Regex,
    max_match_len: usize,
}

impl Needle {
    /// Compiles the search for the secret of a name and value.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if the search cannot be compiled; the secret must not be used then.
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, Error> {
        let (pattern, max_match_len) = encodings::pattern(value);
        let built = RegexBuilder::new(&pattern)
            .unicode(false)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_DFA_BYTES)
            .build();
        // An error of the expression would quote it, and so the value.
        let regex = built.map_err(|_| Error::Secret {
            name: name.to_owned(),
            reason: "responses cannot be searched for its value, so it cannot be used".to_owned(),
        })?;
        Ok(Self { name: Arc::from(name), regex, max_match_len })
    }

    /// Searches bytes in overlapping parts, so that the search can be stopped between two parts. The result of a
    /// stopped search is meaningless.
    fn is_in(&self, bytes: &[u8]) -> bool {
        self.parts(bytes).any(|part| self.regex.is_match(&bytes[part]))
    }

    /// Finds the ranges of the secret in the same parts, in which they may repeat and overlap.
    pub(super) fn found_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let in_part = |part: Range<usize>| {
            let found = self.regex.find_iter(&bytes[part.clone()]);
            found.map(move |found| part.start + found.start()..part.start + found.end())
        };
        self.parts(bytes).flat_map(in_part).collect()
    }

    /// Divides bytes into parts, each with the end of the previous part that may hold the beginning of the secret.
    fn parts(&self, bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + use<> {
        let overlap = self.max_match_len.saturating_sub(1);
        let (length, size) = (bytes.len(), MIN_PART_LEN.max(overlap * 4));
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let start = next?;
            let end = length.min(start + size);
            next = (end < length && step(size)).then(|| end - overlap);
            Some(start..end)
        })
    }
}

/// Shows only the names, because an expression reveals its secret.
impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.needles.iter().map(|needle| &needle.name)).finish()
    }
}

/// A secret of this name was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leak(pub(crate) Arc<str>);

impl Scanner {
    /// Adds a secret to the search.
    pub(crate) fn add(&mut self, needle: &Arc<Needle>) {
        if !self.needles.iter().any(|known| Arc::ptr_eq(known, needle)) {
            self.needles.push(needle.clone());
            self.max_match_len = self.max_match_len.max(needle.max_match_len);
        }
    }

    /// Adds a value of a secret to the search, which keeps at most `max` values of the secret: the latest ones.
    pub(super) fn add_latest(&mut self, needle: &Arc<Needle>, max: usize) {
        self.add(needle);
        let count = self.needles.iter().filter(|known| known.name == needle.name).count();
        let mut surplus = count.saturating_sub(max);
        self.needles.retain(|known| {
            let is_surplus = surplus > 0 && known.name == needle.name;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
    }

    /// Searches bytes for secrets.
    ///
    /// # Errors
    ///
    /// The name of a secret that they contain.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), Leak> {
        let found = self.needles.iter().find(|needle| needle.is_in(bytes));
        found.map_or(Ok(()), |needle| Err(Leak(needle.name.clone())))
    }

    /// Masks every secret in a text.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        masked(text, self.found(text).collect())
    }

    /// Finds the ranges of secrets in a text, unordered and possibly overlapping.
    pub(crate) fn found<'s>(&'s self, text: &'s str) -> impl Iterator<Item = Range<usize>> + 's {
        self.needles.iter().flat_map(move |needle| needle.regex.find_iter(text.as_bytes()).map(|found| found.range()))
    }
}

/// Masks these parts of a text.
pub(crate) fn masked(text: &str, parts: Vec<Range<usize>>) -> Cow<'_, str> {
    masked_as(MASK, text, parts)
}

/// Replaces these parts of a text. All parts are found before any is replaced, because replacing one would hide others
/// that overlap it.
pub(crate) fn masked_as<'t>(mask: &str, text: &'t str, mut parts: Vec<Range<usize>>) -> Cow<'t, str> {
    if parts.is_empty() {
        return Cow::Borrowed(text);
    }
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    parts.dedup_by(|next, before| {
        let overlap = next.start < before.end || next == before;
        if overlap {
            before.end = before.end.max(next.end);
        }
        overlap
    });
    let mut without = Vec::with_capacity(text.len());
    let mut at = 0;
    for part in parts {
        without.extend_from_slice(&text.as_bytes()[at..part.start]);
        without.extend_from_slice(mask.as_bytes());
        at = part.end;
    }
    without.extend_from_slice(&text.as_bytes()[at..]);
    // A part can start or end within a character.
    Cow::Owned(String::from_utf8_lossy(&without).into_owned())
}

/// Incremental search of a byte stream, whatever its chunks. Bytes that could start a secret are held back, so that no
/// part of a secret is passed on.
pub(crate) struct Scan {
    scanner: Arc<Scanner>,
    pending: BytesMut,
    /// Number of pending bytes that were not searched yet.
    unsearched: usize,
}

/// Shows only the length of the pending bytes, because they may start a secret.
impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("scanner", &self.scanner).field("pending", &self.pending.len()).finish()
    }
}

impl Scan {
    pub(crate) fn new(scanner: Arc<Scanner>) -> Self {
        Self { scanner, pending: BytesMut::new(), unsearched: 0 }
    }

    /// Adds a chunk, and returns the bytes that may be passed on, possibly none.
    ///
    /// # Errors
    ///
    /// The secret that was found. No further bytes may be passed on.
    pub(crate) fn push(&mut self, part: &[u8]) -> Result<Bytes, Leak> {
        self.pending.extend_from_slice(part);
        self.unsearched += part.len();
        // Searching again for every small chunk would take quadratic time.
        if self.unsearched < self.scanner.max_match_len {
            return Ok(Bytes::new());
        }
        self.scanner.check(&self.pending)?;
        self.unsearched = 0;
        let safe = self.pending.len().saturating_sub(self.scanner.max_match_len.saturating_sub(1));
        Ok(self.pending.split_to(safe).freeze())
    }

    /// Ends the stream, and returns the remaining bytes.
    ///
    /// # Errors
    ///
    /// The secret that was found.
    pub(crate) fn end(&mut self) -> Result<Bytes, Leak> {
        self.scanner.check(&self.pending)?;
        self.unsearched = 0;
        Ok(self.pending.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::Secret;

    use super::*;

    const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fn scanner(value: &str) -> Arc<Scanner> {
        let mut scanner = Scanner::default();
        scanner.add(&Arc::new(Needle::new("canary", value).unwrap()));
        Arc::new(scanner)
    }

    /// Standard base64, independent of the code under test.
    fn base64(bytes: &[u8]) -> String {
        let groups = bytes.chunks(3).map(|group| {
            let word = (0..3).fold(0_u32, |word, at| word << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
            let digit = |at: usize| char::from(BASE64[(word >> (18 - 6 * at) & 63) as usize]);
            (0..4).map(|at| if at <= group.len() { digit(at) } else { '=' }).collect::<String>()
        });
        groups.collect()
    }

    fn each(text: &str, write: impl Fn(char) -> String) -> String {
        text.chars().map(write).collect()
    }

    fn hex(text: &str, between: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
    }

    fn percent(text: &str, stays: impl Fn(u8) -> bool) -> String {
        let write = |byte: u8| if stays(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(write).collect()
    }

    /// Writes a value in all its encodings, each with text before and after it.
    fn encoded(value: &str) -> Vec<String> {
        let mut encodings = vec![
            value.to_owned(),
            value.to_ascii_uppercase(),
            serde_json::to_string(value).unwrap(),
            serde_json::to_string(&serde_json::to_string(value).unwrap()).unwrap(),
            each(value, |c| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect()),
            percent(&serde_json::to_string(value).unwrap(), |_| false),
            percent(&serde_json::to_string(value).unwrap(), |byte| byte.is_ascii_alphanumeric()),
            percent(value, |_| false),
            percent(value, |_| false).to_lowercase(),
            percent(value, |byte| byte.is_ascii_alphanumeric()),
            percent(value, |byte| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)),
            percent(value, |byte| byte.is_ascii_alphanumeric()).replace("%20", "+"),
            hex(value, ""),
            hex(value, "").to_uppercase(),
            hex(value, ":"),
            hex(value, " "),
            each(value, |c| format!("&#{};", u32::from(c))),
            each(value, |c| format!("&#x{:X};", u32::from(c))),
            value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        ];
        for before in ["", "a", "ab", "user:"] {
            for behind in ["", "x", "xy"] {
                let plain = base64(format!("{before}{value}{behind}").as_bytes());
                let url = plain.replace('+', "-").replace('/', "_");
                let lines: Vec<_> = plain.as_bytes().chunks(7).map(|line| std::str::from_utf8(line).unwrap()).collect();
                encodings.extend([plain.trim_end_matches('=').to_owned(), url, lines.join("\r\n"), lines.join("\\n")]);
                encodings.push(percent(&plain, |byte| byte.is_ascii_alphanumeric()));
                encodings.push(plain.replace('/', "\\/"));
                encodings.push(plain);
            }
        }
        encodings.iter().map(|text| format!("<<{text}>>")).collect()
    }

    const VALUES: [&str; 6] = [
        "ghp_0123456789abcdefGHIJ",
        "s3cr~t/+=? &<>\"'\\end",
        "пароль-密码-🔑",
        "12345678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "line one\nline\ttwo\r\nend",
    ];

    #[test]
    fn a_secret_is_found_in_every_common_encoding() {
        for value in VALUES {
            let scanner = scanner(value);
            for text in encoded(value) {
                assert_eq!(scanner.check(text.as_bytes()), Err(Leak("canary".into())), "{value}: {text}");
                let masked = scanner.mask(&text);
                assert!(scanner.check(masked.as_bytes()).is_ok() && masked.contains(MASK), "{value}: {masked}");
            }
            for order in [u16::to_le_bytes, u16::to_be_bytes] {
                let wide: Vec<u8> = value.encode_utf16().flat_map(order).collect();
                assert!(scanner.check(&wide).is_err(), "{value}");
            }
        }
    }

    #[test]
    fn secrets_that_overlap_are_masked_whole() {
        for (values, text, without) in [
            (["abcd1234", "abcd1234-tail"], "<abcd1234-tail>", format!("<{MASK}>")),
            (["abcd1234-tail", "abcd1234"], "<abcd1234-tail>", format!("<{MASK}>")),
            (["head-1234", "1234-tail"], "<head-1234-tail>", format!("<{MASK}>")),
            (["abcd1234", "abcd1234-tail"], "abcd1234-tailabcd1234-tail", format!("{MASK}{MASK}")),
        ] {
            let mut scanner = Scanner::default();
            for value in values {
                scanner.add(&Arc::new(Needle::new("canary", value).unwrap()));
            }
            assert_eq!(scanner.mask(text), without, "{values:?}");
        }
    }

    #[test]
    fn debug_output_contains_no_value() {
        let scanner = scanner(VALUES[0]);
        let mut scan = Scan::new(scanner.clone());
        scan.push(b"ghp_01234").unwrap();
        let printed = format!("{scanner:?} {scan:?}");
        assert!(printed.contains("canary") && !printed.contains("ghp") && !printed.contains("x67"), "{printed}");
    }

    #[test]
    fn text_without_a_secret_passes() {
        for value in VALUES {
            let scanner = scanner(value);
            let less = &value[..value.char_indices().next_back().unwrap().0];
            for text in ["", "plain text", less, "***REDACTED***", &"ab".repeat(1000)] {
                assert_eq!(scanner.check(text.as_bytes()), Ok(()), "{value}: {text}");
                assert!(matches!(scanner.mask(text), Cow::Borrowed(_)));
            }
        }
    }

    /// Streams bytes in chunks, and returns the bytes passed on and whether the stream was cut.
    fn streamed(scanner: &Arc<Scanner>, bytes: &[u8], part: usize) -> (Vec<u8>, bool) {
        let mut scan = Scan::new(scanner.clone());
        let mut handed = Vec::new();
        for part in bytes.chunks(part) {
            match scan.push(part) {
                Ok(bytes) => handed.extend_from_slice(&bytes),
                Err(_) => return (handed, true),
            }
        }
        match scan.end() {
            Ok(rest) => handed.extend_from_slice(&rest),
            Err(_) => return (handed, true),
        }
        (handed, false)
    }

    #[test]
    fn a_stream_is_cut_before_any_part_of_a_secret_whatever_its_chunks() {
        let value = VALUES[0];
        let scanner = scanner(value);
        for text in encoded(value) {
            for filler in [0, 100, 1500] {
                let whole = [vec![b'.'; filler], text.clone().into_bytes(), vec![b'.'; filler]].concat();
                for part in [1, 2, 7, 64, 1000, whole.len()] {
                    let (handed, cut) = streamed(&scanner, &whole, part);
                    assert!(cut, "{text} in parts of {part}");
                    let start = scanner.needles[0].regex.find(&whole).unwrap().start();
                    assert!(whole[..start].starts_with(&handed), "{text} in parts of {part}: {handed:?}");
                }
            }
        }
    }

    #[test]
    fn a_stream_without_a_secret_is_passed_on_whole() {
        let scanner = scanner(VALUES[0]);
        let whole: Vec<u8> = (0..10_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for part in [1, 13, 577, 578, 10_000] {
            assert_eq!(streamed(&scanner, &whole, part), (whole.clone(), false), "in parts of {part}");
        }
        assert_eq!(streamed(&scanner, b"", 1), (Vec::new(), false));
    }

    #[test]
    fn the_longest_secret_can_be_found() {
        let value: String = (0..Secret::MAX_LEN).map(|at| char::from(b'!' + (at * 7 % 90) as u8)).collect();
        let scanner = scanner(&value);
        for text in encoded(&value) {
            assert!(scanner.check(text.as_bytes()).is_err());
        }
        assert!(scanner.check(&vec![b'.'; 1 << 20]).is_ok());
    }
}
