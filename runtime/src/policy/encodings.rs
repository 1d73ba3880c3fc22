//! One regular expression for all the ways in which a text is commonly written: as it is, escaped for JSON, for a URL or
//! for HTML, also in part and in either case; as hexadecimal digits; as base64 at each of its three alignments, in both
//! alphabets, with or without padding and line breaks; as UTF-16. What was encrypted, compressed or cut is not among them.

use std::fmt::Write;

/// The most bytes that one character takes: an ASCII one as `\\\\\\\\u0000`, others as two of these.
const MAX_ASCII_LEN: usize = 13;
const MAX_OTHER_LEN: usize = 26;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// A line break between two characters of base64, also in a text of JSON, and the most bytes that it takes.
const BREAK: &str = r"(?:\r?\n|(?:\\r)?\\n)?";
const MAX_BREAK_LEN: usize = 4;
/// The most bytes of one character of base64, which may be escaped.
const MAX_SEXTET_LEN: usize = 6;
/// What may stand between two bytes in hexadecimal.
const BETWEEN: &str = "[: -]?";

/// The expression, for matching bytes without regard to Unicode, and the most bytes that it matches.
pub(super) fn pattern(value: &str) -> (String, usize) {
    let written: String = value.chars().map(written).collect();
    let longest: usize = value.chars().map(|c| if c.is_ascii() { MAX_ASCII_LEN } else { MAX_OTHER_LEN }).sum();
    let hex: Vec<String> = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut ways = vec![format!("(?i:{written})"), format!("(?i:{})", hex.join(BETWEEN))];
    ways.extend((0..3).map(|before| base64(value.as_bytes(), before)));
    ways.extend(utf16(value));
    // In base64, four characters stand for three bytes; hexadecimal takes three for one, UTF-16 at most four.
    let longest = longest.max((value.len() * 4 / 3 + 4) * (MAX_SEXTET_LEN + MAX_BREAK_LEN));
    (ways.join("|"), longest)
}

/// A character in any of its spellings.
fn written(c: char) -> String {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    let raw = raw(c.encode_utf8(&mut [0; 4]).bytes());
    let percent: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02x}")).collect();
    let json: String = units.iter().map(|unit| format!(r"\\{{1,8}}u{unit:04x}")).collect();
    let code = u32::from(c);
    let mut ways = vec![raw, percent, json, format!("&#x0{{0,4}}{code:x};?"), format!("&#0{{0,4}}{code};?")];
    if c.is_ascii() {
        ways.push(format!(r"\\{{1,2}}x{code:02x}"));
    }
    match c {
        ' ' => ways.push(r"\+".to_owned()),
        '"' => ways.extend([r#"\\{1,8}""#.to_owned(), "&quot;?".to_owned()]),
        '\'' => ways.extend([r"\\{1,8}'".to_owned(), "&apos;?".to_owned()]),
        '/' => ways.push(r"\\{1,8}/".to_owned()),
        '\\' => ways.push(r"\\{2,8}".to_owned()),
        '&' => ways.push("&amp;?".to_owned()),
        '<' => ways.push("&lt;?".to_owned()),
        '>' => ways.push("&gt;?".to_owned()),
        _ => {}
    }
    format!("(?:{})", ways.join("|"))
}

fn raw(bytes: impl Iterator<Item = u8>) -> String {
    bytes.fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, r"\x{byte:02x}");
        text
    })
}

/// The characters of base64 that `bytes` settle where so many others stand `before` them in their group of three.
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

/// UTF-16 in either order. The zeros around ASCII fit both, for the first and the last byte may be missing.
fn utf16(value: &str) -> Vec<String> {
    if value.is_ascii() {
        let bytes: Vec<String> = value.bytes().map(|byte| raw([byte].into_iter())).collect();
        return vec![bytes.join(r"\x00")];
    }
    [u16::to_le_bytes, u16::to_be_bytes].map(|order| raw(value.encode_utf16().flat_map(order))).into()
}
