//! Foreign texts, shortened for messages, records and lists. A limit that nobody would set apart is here once.

/// Maximum number of characters of a foreign name or value in a message.
pub const MAX_SHOWN: usize = 80;
/// Maximum number of items that a message lists.
pub const MAX_LISTED: usize = 10;
/// Maximum length of a name.
pub const MAX_NAME: usize = 128;
/// Maximum number of characters of a message, reason or description that a tool or a hook gives.
pub const MAX_MESSAGE: usize = 2000;
/// Maximum number of characters of a foreign name in a record.
pub const MAX_RECORDED: usize = 256;

/// Returns the position after the first `max` characters of a longer text.
fn end_of_prefix(text: &str, max: usize) -> Option<usize> {
    // No character has less than a byte.
    if text.len() <= max { None } else { text.char_indices().nth(max).map(|(end, _)| end) }
}

/// Returns the first `max` characters of a text.
pub fn prefix(text: &str, max: usize) -> String {
    text[..end_of_prefix(text, max).unwrap_or(text.len())].to_owned()
}

/// Shortens a text to at most `max` characters. The last one is an ellipsis if something was cut.
pub fn truncate(text: &str, max: usize) -> String {
    match end_of_prefix(text, max) {
        None => text.to_owned(),
        Some(_) => prefix(text, max.saturating_sub(1)) + "…",
    }
}

/// Shortens a text for a message.
pub fn shown(text: &str) -> String {
    truncate(text, MAX_SHOWN)
}

/// Shortens a name for a record.
pub fn clipped(text: &str) -> String {
    prefix(text, MAX_RECORDED)
}

/// Joins the first [`MAX_LISTED`] items with commas, and counts the others.
pub fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("and {more} more"));
    items.take(MAX_LISTED).chain(more).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((truncate("日本語", 3), truncate("日本語", 2)), ("日本語".to_owned(), "日…".to_owned()));
        assert_eq!((prefix("日本語", 2), truncate("ab", 0)), ("日本".to_owned(), "…".to_owned()));
        assert_eq!(shown(&"é".repeat(1_000_000)).chars().count(), MAX_SHOWN);
    }

    #[test]
    fn of_a_long_list_the_first_items_are_named() {
        let names = |count: usize| listed((0..count).map(|n| n.to_string()));
        assert_eq!(names(2), "0, 1");
        assert_eq!(names(12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
