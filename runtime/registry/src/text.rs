//! Text of strangers made safe for an error message: bounded, on one line, without control characters.

use toolcrib_foundation::text::{MAX_SHOWN, prefix};

/// Returns `text` with everything but printable ASCII escaped, cut at the length of a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = prefix(text, MAX_SHOWN).chars().flat_map(escaped).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

fn escaped(character: char) -> Vec<char> {
    match character {
        ' '..='~' if character != '`' => vec![character],
        _ => character.escape_unicode().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_bounded_line_of_ascii() {
        assert_eq!(excerpt("plain text"), "plain text");
        assert_eq!(excerpt("a\nb\u{1b}[31m`"), "a\\u{a}b\\u{1b}[31m\\u{60}");
        assert_eq!(excerpt(&"x".repeat(1_000_000)).len(), MAX_SHOWN + 3);
    }
}
