//! Shortening of text that comes from a program.

/// Shortens a text to at most `max` characters. The last one is an ellipsis if something was cut.
pub fn truncate(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the first `max` characters of a text, without an ellipsis.
pub(crate) fn prefix(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((truncate("日本語", 3), truncate("日本語", 2)), ("日本語".to_owned(), "日…".to_owned()));
        assert_eq!((prefix("日本語", 2), truncate("ab", 0)), ("日本".to_owned(), "…".to_owned()));
    }
}
