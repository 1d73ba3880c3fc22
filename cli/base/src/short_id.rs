//! Identifiers that people type, such as `7k3md-x0q9a`: random, short, and without letters that look like others.

use anyhow::anyhow;
use ring::rand::{SecureRandom, SystemRandom};

/// Digits and letters of an identifier. `i`, `l` and `o` are read as digits, and `u` is left out.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Length of an identifier without its hyphen: 50 bits.
const LEN: usize = 10;
/// Length of each half.
const HALF: usize = LEN / 2;

/// Creates an identifier from random bytes of the system.
pub fn random() -> anyhow::Result<String> {
    let mut bytes = [0; LEN];
    SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow!("the system has no random numbers"))?;
    let characters = bytes.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
    Ok(grouped(&characters))
}

/// Returns the identifier that a person typed, with hyphens and capitals as they are stored; `None` if it is none.
pub fn parse(typed: &str) -> Option<String> {
    let mut characters = Vec::with_capacity(LEN);
    for c in typed.trim().chars().filter(|c| *c != '-') {
        let c = match c.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            c => c,
        };
        let is_known = u8::try_from(c).is_ok_and(|byte| ALPHABET.contains(&byte));
        if !is_known || characters.len() == LEN {
            return None;
        }
        characters.push(c);
    }
    (characters.len() == LEN).then(|| grouped(&characters))
}

fn grouped(characters: &[char]) -> String {
    let (first, second) = characters.split_at(HALF);
    first.iter().chain(&['-']).chain(second).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_differ_and_are_read_back() {
        let all: HashSet<String> = (0..1000).map(|_| random().unwrap()).collect();
        assert_eq!(all.len(), 1000);
        for id in &all {
            assert!(id.len() == LEN + 1 && id.as_bytes()[HALF] == b'-', "{id}");
            assert_eq!(parse(id).as_deref(), Some(id.as_str()));
        }
    }

    #[test]
    fn every_spelling_of_an_identifier_is_read_and_nothing_else() {
        for typed in ["01abc-1xyz0", "01abc1xyz0", " 01ABC-1XYZ0 ", "oiabc-lxyzO"] {
            assert_eq!(parse(typed).as_deref(), Some("01abc-1xyz0"), "{typed}");
        }
        let long = "a".repeat(1 << 16);
        for typed in ["", "-", "01abc-1xyz", "01abc-1xyz00", "01abc-1xyzu", "01abc 1xyz0", "01abc-1xyz\u{e9}", &long] {
            assert_eq!(parse(typed), None, "{typed}");
        }
    }
}
