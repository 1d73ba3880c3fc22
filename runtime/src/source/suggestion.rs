//! Suggestions in messages: the known word nearest to an unknown one.

use toolcrib_foundation::text::MAX_NAME;

/// Maximum number of character pairs compared in one search: a few milliseconds.
const MAX_PAIRS: usize = 1 << 20;

/// Finds the known word nearest to `word` within a third of its length, at most three edits. Only the first of very many
/// words are compared.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(MAX_NAME + 1).count();
    if length > MAX_NAME {
        return None;
    }
    let max_distance = (length / 3).clamp(1, 3);
    let mut pairs = MAX_PAIRS;
    known
        .filter(|candidate| candidate.chars().take(MAX_NAME + 1).count().abs_diff(length) <= max_distance)
        .take_while(|candidate| {
            let remaining = pairs.checked_sub((length + 1) * (candidate.len() + 1));
            pairs = remaining.unwrap_or(0);
            remaining.is_some()
        })
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= max_distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_nearest_of_twenty_thousand_names_is_not_looked_for_to_the_end() {
        let names: Vec<_> = (0..20_000).map(|n| format!("{}{n:05}", "x".repeat(120))).collect();
        let start = Instant::now();
        let word = format!("{}y0000", "x".repeat(120));
        assert_eq!(nearest(&word, names.iter().map(String::as_str)), Some(names[0].as_str()));
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }
}
