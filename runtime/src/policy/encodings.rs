//! A regular expression for the common encodings of a text: plain; escaped for JSON, URLs or HTML, completely or in
//! part, in either case; hexadecimal; base64 at each of its three alignments, in both alphabets, with or without
//! padding and line breaks; UTF-16. Encrypted, compressed or truncated text is not covered.

use std::fmt::Write;

/// Maximum encoded length of one character: `\\\\\\\\u0000` for ASCII, two of these for others.
const MAX_ASCII_LEN: usize = 13;
const MAX_OTHER_LEN: usize = 26;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Line break between two characters of base64, also escaped for JSON, and its maximum length.
const BREAK: &str = r"(?:\r?\n|(?:\\r)?\\n)?";
const MAX_BREAK_LEN: usize = 4;
/// Maximum length of one character of base64, which may be escaped.
const MAX_SEXTET_LEN: usize = 6;
/// Optional separator between two bytes in hexadecimal.
const HEX_SEPARATOR: &str = "[: -]?";

/// Builds the expression, for matching bytes without Unicode, and returns it with the maximum length of a match.
pub(super) fn pattern(value: &str) -> (String, usize) {
    let escaped: String = value.chars().map(spellings).collect();
    let max_len: usize = value.chars().map(|c| if c.is_ascii() { MAX_ASCII_LEN } else { MAX_OTHER_LEN }).sum();
    let hex: Vec<String> = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut encodings = vec![format!("(?i:{escaped})"), format!("(?i:{})", hex.join(HEX_SEPARATOR))];
    encodings.extend((0..3).map(|before| base64(value.as_bytes(), before)));
    encodings.extend(utf16(value));
    // In base64, four characters stand for three bytes; hexadecimal takes three for one, UTF-16 at most four.
    let max_len = max_len.max((value.len() * 4 / 3 + 4) * (MAX_SEXTET_LEN + MAX_BREAK_LEN));
    (encodings.join("|"), max_len)
}

/// Builds the expression for one character in all its spellings.
fn spellings(c: char) -> String {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    let raw = raw(c.encode_utf8(&mut [0; 4]).bytes());
    let percent: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02x}")).collect();
    let json: String = units.iter().map(|unit| format!(r"\\{{1,8}}u{unit:04x}")).collect();
    let code = u32::from(c);
    let mut spellings = vec![raw, percent, json, format!("&#x0{{0,4}}{code:x};?"), format!("&#0{{0,4}}{code};?")];
    if c.is_ascii() {
        spellings.push(format!(r"\\{{1,2}}x{code:02x}"));
    }
    match c {
        ' ' => spellings.push(r"\+".to_owned()),
        '"' => spellings.extend([r#"\\{1,8}""#.to_owned(), "&quot;?".to_owned()]),
        '\'' => spellings.extend([r"\\{1,8}'".to_owned(), "&apos;?".to_owned()]),
        '/' => spellings.push(r"\\{1,8}/".to_owned()),
        '\\' => spellings.push(r"\\{2,8}".to_owned()),
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
            b'+' => r"(?:[+-]|%2[bB]|\\u002[bB])".to_owned(),
            b'/' => r"(?:[/_]|\\/|%2[fF])".to_owned(),
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
