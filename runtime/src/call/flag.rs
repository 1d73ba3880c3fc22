//! What an answer holds that an eye does not see and a model reads: named in the receipt, and never taken out. It judges
//! characters, and knows neither who wrote them nor why.

use serde::Serialize;

/// Something in an answer that a person who looks at it would miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Flag {
    /// Bytes that are not UTF-8; each was replaced by U+FFFD.
    InvalidUtf8,
    /// Characters that turn the direction of what follows (Unicode Standard Annex 9).
    Bidirectional,
    /// Characters without width, and breaks of a line that are none of JSON's.
    ZeroWidth,
    /// Tag characters, U+E0000 to U+E007F: letters that no font shows.
    Tags,
}

impl Flag {
    const IN_TEXT: [Self; 3] = [Self::Bidirectional, Self::ZeroWidth, Self::Tags];

    /// The name used in receipts and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Flag::InvalidUtf8 => "invalid-utf8",
            Flag::Bidirectional => "bidirectional",
            Flag::ZeroWidth => "zero-width",
            Flag::Tags => "tags",
        }
    }

    fn of(c: char) -> Option<Self> {
        Some(match c {
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                Self::Bidirectional
            }
            // Soft hyphen, Mongolian vowel separator, spaces and joiners without width, invisible operators, byte order
            // mark, annotation anchors. Joiners stand in emoji and in several scripts too: a flag is no verdict.
            '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => {
                Self::ZeroWidth
            }
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => Self::ZeroWidth,
            '\u{e0000}'..='\u{e007f}' => Self::Tags,
            _ => return None,
        })
    }

    /// What a line of JSON holds, as it is or behind an escape of JSON's.
    pub(crate) fn in_json(line: &str) -> Vec<Self> {
        // Nearly every answer ends here.
        if line.is_ascii() && !line.contains("\\u") {
            return Vec::new();
        }
        let mut seen = [false; Self::IN_TEXT.len()];
        let mut note = |c| {
            if let Some(place) = Self::of(c).and_then(|flag| Self::IN_TEXT.iter().position(|known| *known == flag)) {
                seen[place] = true;
            }
        };
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            if c != '\\' {
                note(c);
            } else if rest.next() == Some('u') {
                escaped(&mut rest).into_iter().for_each(&mut note);
            }
        }
        Self::IN_TEXT.into_iter().zip(seen).filter_map(|(flag, seen)| seen.then_some(flag)).collect()
    }
}

/// The character of an escape, from behind its `\u`.
fn escaped(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let high = unit(rest.as_str())?;
    *rest = rest.as_str().get(4..)?.chars();
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high.into());
    }
    let low = unit(rest.as_str().strip_prefix("\\u")?)?;
    *rest = rest.as_str().get(6..)?.chars();
    char::decode_utf16([high, low]).next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_flagged_as_it_is_and_behind_an_escape() {
        use Flag::{Bidirectional, Tags, ZeroWidth};
        for (text, escape, flags) in [
            ("\u{202e}", r"\u202e", vec![Bidirectional]),
            ("\u{2066}a\u{2069}", r"\u2066a\u2069", vec![Bidirectional]),
            ("\u{200b}", r"\u200B", vec![ZeroWidth]),
            ("\u{feff}", r"\ufeff", vec![ZeroWidth]),
            ("\u{e0041}", r"\udb40\udc41", vec![Tags]),
            ("\u{2028}\u{202e}\u{e007f}", r"\u2028\u202e\udb40\udc7f", vec![Bidirectional, ZeroWidth, Tags]),
        ] {
            assert_eq!(Flag::in_json(&format!("\"{text}\"")), flags, "{escape} as it is");
            assert_eq!(Flag::in_json(&format!("\"{escape}\"")), flags, "{escape}");
        }
    }

    #[test]
    fn ordinary_text_of_any_script_is_not_flagged() {
        for line in [r#"{"a":"é漢字 שלום 😀\u00e9\ud83d\ude00\n\t\\u202e"}"#, "{\"tab\": 1}\t", r#""\\\\u200b""#]
        {
            assert_eq!(Flag::in_json(line), [], "{line}");
        }
        for broken in [r"\u", r"\u12", r"\ud800", r"\ud800\u", r"\ud800x", r"\u00é", "\\"] {
            assert_eq!(Flag::in_json(broken), [], "{broken}");
        }
    }
}
