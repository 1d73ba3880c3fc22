//! Previews of texts that are too long to show whole: their beginning and their end.

/// Text preview: its head, its tail and the number of characters omitted between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview<'a> {
    /// Beginning of the text; the whole text if nothing is omitted.
    pub head: &'a str,
    /// End of the text; empty if nothing is omitted.
    pub tail: &'a str,
    /// Number of characters omitted between the two.
    pub omitted: usize,
}

/// Shortens `text` to a head and a tail of together at most `max_chars` characters (Unicode scalar values): about three
/// quarters head and one quarter tail, each cut between characters.
pub fn preview(text: &str, max_chars: usize) -> Preview<'_> {
    // A character has at least one byte.
    let chars = if text.len() <= max_chars { 0 } else { text.chars().count() };
    if chars <= max_chars {
        return Preview { head: text, tail: "", omitted: 0 };
    }
    let after = max_chars / 4;
    let before = max_chars - after;
    let boundary = |chars| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..boundary(before)], &text[boundary(chars - after)..]);
    Preview { head, tail, omitted: chars - max_chars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_the_cap_is_its_own_head() {
        for (text, max_chars) in [("", 0), ("", 9), ("whole", 5), ("whole", usize::MAX), ("日本語", 3)] {
            assert_eq!(preview(text, max_chars), Preview { head: text, tail: "", omitted: 0 }, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (text, max_chars, head, tail, omitted) in [
            ("abcdefghij", 8, "abcdef", "ij", 2),
            ("aä日👩bß本💻", 4, "aä日", "💻", 4),
            ("日本語テキスト", 5, "日本語テ", "ト", 2),
            // A tail needs four characters.
            ("日本語", 2, "日本", "", 1),
            ("日本語", 1, "日", "", 2),
            ("日本語", 0, "", "", 3),
        ] {
            assert_eq!(preview(text, max_chars), Preview { head, tail, omitted }, "{text} {max_chars}");
        }
    }

    #[test]
    fn head_tail_and_rest_are_the_whole_for_every_cap() {
        let text = "e\u{301}👩\u{200d}💻ñ".repeat(7);
        let chars = text.chars().count();
        for max_chars in 0..=chars + 1 {
            let Preview { head, tail, omitted } = preview(&text, max_chars);
            let shown = head.chars().count() + tail.chars().count();
            assert_eq!(shown + omitted, chars);
            assert_eq!(shown, max_chars.min(chars));
            assert!(text.starts_with(head) && text.ends_with(tail));
        }
    }
}
