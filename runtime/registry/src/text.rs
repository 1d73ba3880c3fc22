//! Text of strangers made safe for an error message: bounded, on one line, without control characters.

/// Longest excerpt of a registry's text in a message, in characters.
pub(crate) const MAX_EXCERPT_CHARS: usize = 120;

/// Returns `text` with everything but printable ASCII escaped, cut at [`MAX_EXCERPT_CHARS`].
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_EXCERPT_CHARS).flat_map(escaped).collect();
    if text.chars().nth(MAX_EXCERPT_CHARS).is_some() {
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
        assert_eq!(excerpt(&"x".repeat(1_000_000)).len(), MAX_EXCERPT_CHARS + 3);
    }
}
