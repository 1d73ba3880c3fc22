//! A regular expression for the common encodings of a text: plain; escaped for JSON, URLs (up to three times) or HTML, completely
//! or in part, in either case; hexadecimal with separators; base64 at each of its three alignments, in both alphabets, with or
//! without padding, spaces and line breaks; UTF-16. Encrypted, compressed or truncated text is not covered.

use std::fmt::Write;

/// Maximum encoded length of one character: `&#x00000000ff;` for ASCII, four bytes as `%2525f0` for others, and eight backslashes and
/// a letter, each as `%25255c`, for a character with an escape of its own.
const MAX_ASCII_LEN: usize = 14;
const MAX_OTHER_LEN: usize = 28;
const MAX_ESCAPED_LEN: usize = 63;
/// Characters with an escape of their own, and the escapes' letters.
const ESCAPES: [(char, char); 8] =
    [('"', '"'), ('\'', '\''), ('/', '/'), ('\n', 'n'), ('\r', 'r'), ('\t', 't'), ('\u{8}', 'b'), ('\u{c}', 'f')];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Spaces and line breaks between two characters of base64, also escaped for JSON, and their maximum length.
const BREAK: &str = r"(?:[ \t\r\n]|\\[rnt]){0,4}";
const MAX_BREAK_LEN: usize = 8;
/// Maximum length of one base64 character, which may be escaped.
const MAX_SEXTET_LEN: usize = 7;
/// Optional separator between two bytes in hexadecimal, and its maximum length.
const HEX_SEPARATOR: &str = r"[:;.,_ \t\r\n-]{0,2}(?:0x|\\x)?";
const MAX_HEX_LEN: usize = 6;
/// Sign of an escaped byte in a URL. In a URL within another URL, the sign is escaped itself.
const PERCENT: &str = "%(?:25){0,2}";
/// Backslash of an escape, which may be escaped itself in a URL.
const BACKSLASH: &str = r"(?:\\|%(?:25){0,2}5c)";
/// Minimum length in bytes of a value that is searched as base64: shorter base64 would match unrelated text.
const MIN_BASE64_LEN: usize = 8;

/// Builds the expression, for matching bytes without Unicode, and returns it with the maximum length of a match.
pub(super) fn pattern(value: &str) -> (String, usize) {
    let escaped: String = value.chars().map(spellings).collect();
    let max_len: usize = value.chars().map(max_len).sum();
    let hex: Vec<String> = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut encodings = vec![format!("(?i:{escaped})"), format!("(?i:{})", hex.join(HEX_SEPARATOR))];
    if value.len() >= MIN_BASE64_LEN {
        encodings.extend((0..3).map(|before| base64(value.as_bytes(), before)));
    }
    encodings.extend(utf16(value));
    // In base64, four characters stand for three bytes; UTF-16 takes at most four for one.
    let max_base64 = (value.len() * 4 / 3 + 4) * (MAX_SEXTET_LEN + MAX_BREAK_LEN);
    let max_len = max_len.max(max_base64).max(value.len() * MAX_HEX_LEN);
    (encodings.join("|"), max_len)
}

/// Returns the maximum encoded length of a character.
fn max_len(c: char) -> usize {
    match c {
        '\\' => MAX_ESCAPED_LEN,
        c if ESCAPES.iter().any(|(escaped, _)| *escaped == c) => MAX_ESCAPED_LEN,
        c if c.is_ascii() => MAX_ASCII_LEN,
        _ => MAX_OTHER_LEN,
    }
}

/// Builds the expression for one character in all its spellings.
fn spellings(c: char) -> String {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    let raw = raw(c.encode_utf8(&mut [0; 4]).bytes());
    let percent: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("{PERCENT}{byte:02x}")).collect();
    let json: String = units.iter().map(|unit| format!(r"\\{{1,8}}u{unit:04x}")).collect();
    let code = u32::from(c);
    let mut spellings = vec![raw, percent, json, format!("&#x0{{0,8}}{code:x};?"), format!("&#0{{0,8}}{code};?")];
    if c.is_ascii() {
        spellings.push(format!(r"\\{{1,2}}x{code:02x}"));
    }
    if let Some((_, letter)) = ESCAPES.iter().find(|(escaped, _)| *escaped == c) {
        spellings.push(format!("{BACKSLASH}{{1,8}}(?:{letter}|{PERCENT}{:02x})", u32::from(*letter)));
    }
    match c {
        ' ' => spellings.push(r"\+".to_owned()),
        '"' => spellings.push("&quot;?".to_owned()),
        '\'' => spellings.push("&apos;?".to_owned()),
        '\\' => spellings.push(format!("{BACKSLASH}{{2,8}}")),
        '&' => spellings.push("&amp;?".to_owned()),
        '<' => spellings.push("&lt;?".to_owned()),
        '>' => spellings.push("&gt;?".to_owned()),
        _ => {}
    }
    format!("(?:{})", spellings.join("|"))
}

fn raw(bytes: impl Iterator<Item = u8>) -> String {
    bytes.fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, r"\x{byte:02x}");
        text
    })
}

/// Builds the expression for the base64 characters that `bytes` determine, with `before` other bytes before them in
/// their group of three.
fn base64(bytes: &[u8], before: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    let sextet = |at: usize| {
        let bit = at * 6;
        let byte = |at: usize| u16::from(padded.get(at).copied().unwrap_or(0));
        let pair = byte(bit / 8) << 8 | byte(bit / 8 + 1);
        BASE64[usize::from(pair >> (10 - bit % 8) & 63)]
    };
    let characters: Vec<String> = (first..end)
        .map(|at| match sextet(at) {
            b'+' => format!(r"(?:[+-]|{PERCENT}2[bB]|\\u002[bB])"),
            b'/' => format!(r"(?:[/_]|\\/|{PERCENT}2[fF])"),
            other => char::from(other).to_string(),
        })
        .collect();
    characters.join(BREAK)
}

/// Builds the expressions for UTF-16 in both byte orders. ASCII needs one, without its first and last zero byte.
fn utf16(value: &str) -> Vec<String> {
    if value.is_ascii() {
        let bytes: Vec<String> = value.bytes().map(|byte| raw([byte].into_iter())).collect();
        return vec![bytes.join(r"\x00")];
    }
    [u16::to_le_bytes, u16::to_be_bytes].map(|order| raw(value.encode_utf16().flat_map(order))).into()
}
