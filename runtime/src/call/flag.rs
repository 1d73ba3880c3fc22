//! Flags of invisible characters in an answer, which a model reads and a person does not see. They are named in the receipt
//! and never removed.

use memchr::memmem;
use serde::Serialize;

/// Kind of content in an answer that a person cannot see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Flag {
    /// Bytes that are not UTF-8; each was replaced by U+FFFD.
    InvalidUtf8,
    /// Characters that change the direction of the following text (Unicode Standard Annex 9).
    Bidirectional,
    /// Characters without width, and line breaks that JSON does not have.
    ZeroWidth,
    /// Tag characters, U+E0000 to U+E007F, which are letters that no font shows, and the rest of their plane up to U+E0FFF.
    Tags,
    /// Variation selectors, except the one that turns a symbol into an emoji. A row of them can encode any text.
    Variation,
}

impl Flag {
    const IN_TEXT: [Self; 4] = [Self::Bidirectional, Self::ZeroWidth, Self::Tags, Self::Variation];

    /// Returns the name used in receipts and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Flag::InvalidUtf8 => "invalid-utf8",
            Flag::Bidirectional => "bidirectional",
            Flag::ZeroWidth => "zero-width",
            Flag::Tags => "tags",
            Flag::Variation => "variation",
        }
    }

    /// Returns the flag of an invisible character after the character `before`, if any: all that Unicode lists as
    /// `Default_Ignorable_Code_Point`, the line and paragraph separators, and the annotation anchors.
    pub fn unseen(before: Option<char>, c: char) -> Option<Self> {
        Some(match c {
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                Self::Bidirectional
            }
            '\u{fe0f}' if before.is_some_and(may_be_emoji) => return None,
            '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
                Self::Variation
            }
            '\u{e0000}'..='\u{e0fff}' => Self::Tags,
            // Soft hyphen, grapheme joiner, Mongolian vowel separator, spaces and joiners without width, invisible
            // operators, byte order mark, annotation anchors. Emoji and several scripts also use joiners: a flag is not a
            // verdict.
            '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' => Self::ZeroWidth,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' => Self::ZeroWidth,
            // Hangul fillers, invisible Khmer vowels, controls of shorthand and of music.
            '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' => Self::ZeroWidth,
            '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => Self::ZeroWidth,
            _ => return None,
        })
    }

    /// Returns the flags in a JSON line, including characters written as JSON escapes.
    pub(crate) fn in_json(line: &str) -> Vec<Self> {
        // Nearly every answer returns here.
        if line.is_ascii() && memmem::find(line.as_bytes(), b"\\u").is_none() {
            return Vec::new();
        }
        let mut seen = [false; Self::IN_TEXT.len()];
        let (mut rest, mut before) = (line.chars(), None);
        while let Some(c) = rest.next() {
            let c = match c {
                '\\' if rest.next() == Some('u') => escaped(&mut rest),
                // Any other escape is a visible character.
                '\\' => None,
                c => Some(c),
            };
            let flag = c.and_then(|c| Self::unseen(before, c));
            if let Some(place) = flag.and_then(|flag| Self::IN_TEXT.iter().position(|known| *known == flag)) {
                seen[place] = true;
            }
            before = c;
        }
        Self::IN_TEXT.into_iter().zip(seen).filter_map(|(flag, seen)| seen.then_some(flag)).collect()
    }
}

/// Returns `true` if one U+FE0F after the character is normal: a symbol outside ASCII that can be an emoji, or is in a block
/// of such symbols.
fn may_be_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Decodes the character of an escape, after its `\u`.
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
        use Flag::{Bidirectional, Tags, Variation, ZeroWidth};
        for (text, escape, flags) in [
            ("\u{202e}", r"\u202e", vec![Bidirectional]),
            ("\u{2066}a\u{2069}", r"\u2066a\u2069", vec![Bidirectional]),
            ("\u{200b}", r"\u200B", vec![ZeroWidth]),
            ("\u{feff}", r"\ufeff", vec![ZeroWidth]),
            ("\u{e0041}", r"\udb40\udc41", vec![Tags]),
            ("\u{e0080}", r"\udb40\udc80", vec![Tags]),
            ("\u{34f}\u{115f}\u{3164}\u{ffa0}", r"\u034f\u115f\u3164\uffa0", vec![ZeroWidth]),
            ("a\u{fe00}", r"a\ufe00", vec![Variation]),
            ("a\u{fe0f}", r"a\ufe0f", vec![Variation]),
            ("❤\u{fe0f}\u{fe0f}", r"\u2764\ufe0f\ufe0f", vec![Variation]),
            ("😀\u{e0100}", r"\ud83d\ude00\udb40\udd00", vec![Variation]),
            ("\u{2028}\u{202e}\u{e007f}", r"\u2028\u202e\udb40\udc7f", vec![Bidirectional, ZeroWidth, Tags]),
        ] {
            assert_eq!(Flag::in_json(&format!("\"{text}\"")), flags, "{escape} as it is");
            assert_eq!(Flag::in_json(&format!("\"{escape}\"")), flags, "{escape}");
        }
    }

    #[test]
    fn the_one_selector_that_makes_an_emoji_is_not_flagged() {
        for line in ["\"❤\u{fe0f} 🏳\u{fe0f} ©\u{fe0f}\"", r#""\u2764\ufe0f \ud83c\udff3\ufe0f""#] {
            assert_eq!(Flag::in_json(line), [], "{line}");
        }
        assert_eq!(Flag::in_json("\"❤\\n\u{fe0f}\""), [Flag::Variation], "it stands behind a line break");
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
