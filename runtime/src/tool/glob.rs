//! Glob patterns over names: `*` matches any text, `?` matches one character, and every other character matches itself.

use std::fmt;
use std::str::FromStr;

use toolcrib_foundation::text::shown;

/// Maximum length of a pattern in characters. Matching visits each character of the text once and costs a [`WORD`]-th of
/// the pattern's length per character, for every pattern.
const MAX_CHARS: usize = 1024;
/// Number of pattern positions that one machine word represents.
const WORD: usize = u64::BITS as usize;

/// Pattern that matches a whole name or text.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    /// Number of positions, which are characters other than `*`: the minimum length of a matching text.
    length: usize,
    /// Positions of each literal character, sorted by character.
    literals: Vec<(char, Positions)>,
    /// Positions of `?`.
    single: Positions,
    /// Positions that follow a `*`, including the end of the pattern.
    after_star: Positions,
}

/// Set of positions in a pattern, one bit per position, in [`WORD`]-bit words.
type Positions = Vec<u64>;

/// Parse error of a [`Glob`]: more than the maximum number of characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a pattern has more than {MAX_CHARS} characters: `{start}…`")]
pub struct GlobError {
    /// Start of the pattern.
    start: String,
}

impl Glob {
    /// Creates the pattern `*`, which matches every text.
    pub fn everything() -> Self {
        Self { text: "*".to_owned(), length: 0, literals: Vec::new(), single: vec![0], after_star: vec![1] }
    }

    /// Returns `true` if the pattern matches the whole text.
    pub fn is_match(&self, text: &str) -> bool {
        if self.is_everything() {
            return true;
        }
        // Lengths of the pattern's beginnings that match the text so far.
        let (mut word, mut words) = ([0_u64], Vec::new());
        let reached = match self.after_star.len() {
            1 => word.as_mut_slice(),
            many => {
                words.resize(many, 0);
                words.as_mut_slice()
            }
        };
        reached[0] = 1;
        for c in text.chars() {
            let found = self.literals.binary_search_by_key(&c, |(literal, _)| *literal).ok();
            let literal = found.map(|index| &self.literals[index].1);
            let (mut carry, mut alive) = (0, 0);
            for (index, positions) in reached.iter_mut().enumerate() {
                let accepting = self.single[index] | literal.map_or(0, |literal| literal[index]);
                let moved = *positions & accepting;
                *positions = moved << 1 | carry | *positions & self.after_star[index];
                carry = moved >> (WORD - 1);
                alive |= *positions;
            }
            if alive == 0 {
                return false;
            }
        }
        contains(reached, self.length)
    }

    /// Returns `true` if the pattern matches every text.
    pub fn is_everything(&self) -> bool {
        self.length == 0 && contains(&self.after_star, 0)
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn contains(positions: &[u64], position: usize) -> bool {
    positions[position / WORD] >> (position % WORD) & 1 == 1
}

fn insert(positions: &mut [u64], position: usize) {
    positions[position / WORD] |= 1 << (position % WORD);
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(glob: &str) -> Result<Self, GlobError> {
        if let Some((end, _)) = glob.char_indices().nth(MAX_CHARS) {
            return Err(GlobError { start: shown(&glob[..end]) });
        }
        let length = glob.chars().filter(|c| *c != '*').count();
        let none = vec![0; length / WORD + 1];
        let mut literals = Vec::<(char, Positions)>::new();
        let (mut single, mut after_star) = (none.clone(), none.clone());
        let mut position = 0;
        for c in glob.chars() {
            match c {
                '*' => {
                    insert(&mut after_star, position);
                    continue;
                }
                '?' => insert(&mut single, position),
                c => match literals.iter_mut().find(|(known, _)| *known == c) {
                    Some((_, positions)) => insert(positions, position),
                    None => {
                        let mut positions = none.clone();
                        insert(&mut positions, position);
                        literals.push((c, positions));
                    }
                },
            }
            position += 1;
        }
        literals.sort_unstable_by_key(|(c, _)| *c);
        Ok(Self { text: glob.to_owned(), length, literals, single, after_star })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> Glob {
        text.parse().unwrap()
    }

    #[test]
    fn stars_and_question_marks_stand_for_text_and_a_character() {
        for (pattern, text) in
            [("fs_*", "fs_"), ("*", ""), ("**", "a\nb"), ("a?c", "aéc"), ("a*b*c", "a/b\nbc"), ("", "")]
        {
            assert!(glob(pattern).is_match(text), "{pattern} {text}");
        }
        for (pattern, text) in [("fs_*", "fs"), ("a?c", "ac"), ("a*b", "abc"), ("", "a"), ("?", ""), ("a.c", "abc")] {
            assert!(!glob(pattern).is_match(text), "{pattern} {text}");
        }
        assert_eq!(format!("{:?}", Glob::everything()), format!("{:?}", glob("*")));
        assert!(glob("**").is_everything() && !glob("*?").is_everything() && !glob("").is_everything());
    }

    #[test]
    fn a_pattern_of_four_thousand_stars_is_refused() {
        let error = "*a".repeat(2000).parse::<Glob>().unwrap_err().to_string();
        assert!(error.starts_with("a pattern has more than 1024 characters: `*a*a") && error.len() < 200, "{error}");
        assert!("*".repeat(1025).parse::<Glob>().is_err() && "é".repeat(1025).parse::<Glob>().is_err());
    }

    #[test]
    fn the_worst_pattern_goes_through_a_long_text_once() {
        let text = "a".repeat(4 << 20);
        for pattern in ["*a".repeat(511) + "*b", "?".repeat(1023) + "*", format!("*{}b", "a".repeat(1022))] {
            let start = std::time::Instant::now();
            glob(&pattern).is_match(&text);
            assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_the_regular_expression_matches(pattern in "[ab*?é]{0,80}", text in "[abé]{0,90}") {
            let regex = pattern.replace('*', ".*").replace('?', ".");
            let regex = regex::Regex::new(&format!(r"(?s)\A{regex}\z")).unwrap();
            prop_assert_eq!(glob(&pattern).is_match(&text), regex.is_match(&text));
        }
    }
}
