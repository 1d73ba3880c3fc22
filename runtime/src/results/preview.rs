//! The beginning and the end of a text that is too long to be told whole.

/// What is told of a text: a head, a tail, and how much lies between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview<'a> {
    /// The beginning; the whole text where nothing is left out.
    pub head: &'a str,
    /// The end; empty where nothing is left out.
    pub tail: &'a str,
    /// Characters between the two that are left out.
    pub left_out: usize,
}

/// The head and the tail of `text`, together at most `max_chars` characters (Unicode scalar values): about three
/// quarters head and one quarter tail, each cut between characters.
pub fn preview(text: &str, max_chars: usize) -> Preview<'_> {
    // A character has at least one byte.
    let chars = if text.len() <= max_chars { 0 } else { text.chars().count() };
    if chars <= max_chars {
        return Preview { head: text, tail: "", left_out: 0 };
    }
    let after = max_chars / 4;
    let before = max_chars - after;
    let border = |chars| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..border(before)], &text[border(chars - after)..]);
    Preview { head, tail, left_out: chars - max_chars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_the_cap_is_its_own_head() {
        for (text, most) in [("", 0), ("", 9), ("whole", 5), ("whole", usize::MAX), ("日本語", 3)] {
            assert_eq!(preview(text, most), Preview { head: text, tail: "", left_out: 0 }, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (text, most, head, tail, left_out) in [
            ("abcdefghij", 8, "abcdef", "ij", 2),
            ("aä日👩bß本💻", 4, "aä日", "💻", 4),
            ("日本語テキスト", 5, "日本語テ", "ト", 2),
            // A tail needs four characters.
            ("日本語", 2, "日本", "", 1),
            ("日本語", 1, "日", "", 2),
            ("日本語", 0, "", "", 3),
        ] {
            assert_eq!(preview(text, most), Preview { head, tail, left_out }, "{text} {most}");
        }
    }

    #[test]
    fn head_tail_and_rest_are_the_whole_for_every_cap() {
        let text = "e\u{301}👩\u{200d}💻ñ".repeat(7);
        let chars = text.chars().count();
        for most in 0..=chars + 1 {
            let Preview { head, tail, left_out } = preview(&text, most);
            let shown = head.chars().count() + tail.chars().count();
            assert_eq!(shown + left_out, chars);
            assert_eq!(shown, most.min(chars));
            assert!(text.starts_with(head) && text.ends_with(tail));
        }
    }
}
