//! Suggestions in hints: the known word nearest to an unknown one.

/// Maximum number of edits between a word and its suggestion.
const MAX_EDITS: usize = 3;

/// Finds the known word nearest to `word` within a third of its length.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).min(MAX_EDITS);
    let far = |known: &str| strsim::damerau_levenshtein(known, word);
    known.into_iter().map(|known| (far(known), known)).filter(|(far, _)| *far <= most).min().map(|(_, known)| known)
}

/// Returns a hint about an unknown word: the nearest known one, or all of them.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("expected one of `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poor_guess_is_not_suggested() {
        let known = ["permissions", "routes", "path", "id"];
        for (word, suggestion) in [
            ("permision", Some("permissions")),
            ("paht", Some("path")),
            ("route", Some("routes")),
            ("rules", None),
            ("ix", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), suggestion, "{word}");
        }
        assert_eq!(hint("rules", &known), "expected one of `permissions`, `routes`, `path`, `id`");
    }
}
