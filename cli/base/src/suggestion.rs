//! Suggestions in hints: the known word nearest to an unknown one.

/// Maximum number of edits between a word and its suggestion.
const MAX_EDITS: usize = 3;
/// Maximum length of a word that is compared, in bytes.
const MAX_WORD_LEN: usize = 128;
/// Maximum number of compared words: with the length of a word, a few milliseconds.
const MAX_WORDS: usize = 256;

/// Finds the known word nearest to `word` within a third of its length. Only the first of very many words are compared.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let max_edits = (word.chars().count() / 3).min(MAX_EDITS);
    let is_short = |word: &str| word.len() <= MAX_WORD_LEN;
    let known = known.into_iter().take(MAX_WORDS).filter(|known| is_short(known) && is_short(word));
    let ranked = known.map(|known| (strsim::damerau_levenshtein(known, word), known));
    ranked.filter(|(edits, _)| *edits <= max_edits).min().map(|(_, known)| known)
}

/// Returns a hint about an unknown word: the nearest known one, or all of them.
pub fn hint(word: &str, known: &[&str]) -> String {
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
        let long = "x".repeat(MAX_WORD_LEN + 1);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        let many = vec!["other"; MAX_WORDS];
        assert_eq!(nearest("paht", many.into_iter().chain(["path"])), None);
        assert_eq!(hint("rules", &known), "expected one of `permissions`, `routes`, `path`, `id`");
    }
}
