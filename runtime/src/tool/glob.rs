//! Patterns over names: `*` stands for any text, `?` for one character, everything else for itself.

use std::fmt;
use std::str::FromStr;

/// The most characters of a pattern. A text is gone through once, at the cost of a [`WORD`]-th of them for each of its
/// characters, whatever the pattern is.
const MAX_CHARS: usize = 1024;
/// The characters of a pattern that are compared at once.
const WORD: usize = u64::BITS as usize;
/// The most characters of a pattern that a message shows.
const MAX_SHOWN: usize = 100;

/// A pattern over a whole name or text.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    /// The least characters of a text: each is a place in the pattern.
    length: usize,
    /// The places at which a character of its own stands, by that character in order.
    own: Vec<(char, Places)>,
    /// The places at which any one character may stand.
    one: Places,
    /// The places before which any text may stand, the end included.
    any: Places,
}

/// A set of places, one bit for each, in words of [`WORD`].
type Places = Vec<u64>;

impl Glob {
    /// Creates the pattern `*`, which matches every text.
    pub fn everything() -> Self {
        Self { text: "*".to_owned(), length: 0, own: Vec::new(), one: vec![0], any: vec![1] }
    }

    /// Whether the whole text is as the pattern says.
    pub fn is_match(&self, text: &str) -> bool {
        if self.is_everything() {
            return true;
        }
        // The places up to which the pattern has matched what was gone through.
        let mut reached = vec![0_u64; self.any.len()];
        reached[0] = 1;
        for c in text.chars() {
            let own = self.own.binary_search_by_key(&c, |(own, _)| *own).ok().map(|at| &self.own[at].1);
            let (mut carry, mut alive) = (0, 0);
            for (at, places) in reached.iter_mut().enumerate() {
                let fits = self.one[at] | own.map_or(0, |own| own[at]);
                let moved = *places & fits;
                *places = moved << 1 | carry | *places & self.any[at];
                carry = moved >> (WORD - 1);
                alive |= *places;
            }
            if alive == 0 {
                return false;
            }
        }
        has(&reached, self.length)
    }

    /// Whether it matches every text.
    pub fn is_everything(&self) -> bool {
        self.length == 0 && has(&self.any, 0)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn has(places: &[u64], at: usize) -> bool {
    places[at / WORD] >> (at % WORD) & 1 == 1
}

fn set(places: &mut [u64], at: usize) {
    places[at / WORD] |= 1 << (at % WORD);
}

impl FromStr for Glob {
    type Err = String;

    fn from_str(glob: &str) -> Result<Self, String> {
        if let Some((end, _)) = glob.char_indices().nth(MAX_CHARS) {
            let shown: String = glob[..end].chars().take(MAX_SHOWN).collect();
            return Err(format!("a pattern has more than {MAX_CHARS} characters: `{shown}…`"));
        }
        let length = glob.chars().filter(|c| *c != '*').count();
        let none = vec![0; length / WORD + 1];
        let (mut own, mut one, mut any) = (Vec::<(char, Places)>::new(), none.clone(), none.clone());
        let mut at = 0;
        for c in glob.chars() {
            match c {
                '*' => {
                    set(&mut any, at);
                    continue;
                }
                '?' => set(&mut one, at),
                c => match own.iter_mut().find(|(known, _)| *known == c) {
                    Some((_, places)) => set(places, at),
                    None => {
                        let mut places = none.clone();
                        set(&mut places, at);
                        own.push((c, places));
                    }
                },
            }
            at += 1;
        }
        own.sort_unstable_by_key(|(c, _)| *c);
        Ok(Self { text: glob.to_owned(), length, own, one, any })
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
        let error = "*a".repeat(2000).parse::<Glob>().unwrap_err();
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
