//! Names of tools as another system accepts them. A name that the system accepts stays; every other name is rewritten, and
//! ends with the start of its digest, so that it depends on the name alone and differs from every other.

use std::collections::{HashMap, HashSet};

/// Rule of a system for names: ASCII letters, digits, `_`, `-` and further characters, up to a length.
#[derive(Debug, Clone, Copy)]
pub struct NameRule {
    /// Maximum length in characters.
    pub(crate) max: usize,
    /// Characters besides letters, digits, `_` and `-`.
    pub(crate) further: &'static [char],
    /// `true` if a name must start with a letter or `_`.
    pub(crate) starts_with_letter: bool,
}

/// Lengths of the digest that ends a rewritten name, in hexadecimal digits. A longer one is used only if a tool has the
/// shorter name itself.
const DIGEST_LENGTHS: [usize; 3] = [8, 16, 32];

impl NameRule {
    fn allows(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-' || self.further.contains(&c)
    }

    fn may_start(self, c: char) -> bool {
        !self.starts_with_letter || c.is_ascii_alphabetic() || c == '_'
    }

    /// Returns `true` if the system accepts the name.
    pub(crate) fn accepts(self, name: &str) -> bool {
        let length = name.chars().count();
        (1..=self.max).contains(&length)
            && name.chars().all(|c| self.allows(c))
            && name.chars().next().is_some_and(|c| self.may_start(c))
    }

    /// Returns the rewritten name with so many digits of its digest.
    fn rewritten(self, name: &str, digits: usize) -> String {
        let digest = toolcrib::source::digest(name.as_bytes());
        let digest = digest.rsplit(':').next().unwrap_or_default();
        let digest: String = digest.chars().take(digits).collect();
        let start = if name.chars().next().is_some_and(|c| self.may_start(c)) { "" } else { "_" };
        let words = name.chars().map(|c| if self.allows(c) { c } else { '_' });
        let room = self.max.saturating_sub(digits + 1);
        let kept: String = start.chars().chain(words).take(room).collect();
        format!("{kept}_{digest}")
    }
}

/// Names of several tools for one system. All of them differ.
#[derive(Debug, Default)]
pub struct Names(HashMap<String, String>);

impl Names {
    /// Maps the names of tools, which must differ. The order of the names has no effect.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>, rule: NameRule) -> Self {
        Self::beside(&[], names, rule)
    }

    /// Maps tool names as [`Names::of`]. A tool with a reserved name gets another.
    pub fn beside<'a>(reserved: &[&str], names: impl IntoIterator<Item = &'a str>, rule: NameRule) -> Self {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        let stays = |name: &&str| rule.accepts(name) && !reserved.contains(name);
        if names.iter().all(stays) {
            return Self::default();
        }
        let mut taken: HashSet<String> =
            names.iter().filter(|name| stays(name)).chain(reserved).map(|name| (*name).to_owned()).collect();
        let mut mapped = HashMap::new();
        for name in names {
            let new = match stays(&name) {
                true => name.to_owned(),
                false => {
                    let mut candidates = DIGEST_LENGTHS.map(|digits| rule.rewritten(name, digits)).into_iter();
                    let free = candidates.find(|candidate| !taken.contains(candidate));
                    free.unwrap_or_else(|| rule.rewritten(name, rule.max.min(64) - 1))
                }
            };
            taken.insert(new.clone());
            mapped.insert(name.to_owned(), new);
        }
        Self(mapped)
    }

    /// Returns the tool that has a name for the system; the name itself if no tool has it.
    pub fn own<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|(_, new)| *new == name).map_or(name, |(own, _)| own)
    }

    /// Returns the name of a tool for the system; the name itself if it was not mapped.
    pub fn get<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: NameRule = NameRule { max: 24, further: &['.'], starts_with_letter: true };

    #[test]
    fn an_accepted_name_stays_and_every_other_is_rewritten() {
        let long = "x".repeat(25);
        let given = ["fs_read.file", "jmespath/jmespath", "9lives", "ä b", long.as_str(), ""];
        let names = Names::of(given, RULE);
        assert_eq!(names.get("fs_read.file"), "fs_read.file");
        assert!(given.iter().all(|name| names.own(names.get(name)) == *name));
        assert_eq!(names.own("unknown"), "unknown");
        assert!(names.get("jmespath/jmespath").starts_with("jmespath_jmespa_"), "{names:?}");
        assert!(names.get("9lives").starts_with("_9lives_"), "{names:?}");
        let mapped: HashSet<&str> = given.iter().map(|name| names.get(name)).collect();
        assert_eq!(mapped.len(), given.len());
        assert!(mapped.iter().all(|name| RULE.accepts(name)), "{mapped:?}");
        let mut reversed = given;
        reversed.reverse();
        let again = Names::of(reversed, RULE);
        assert!(given.iter().all(|name| names.get(name) == again.get(name)));
        assert_eq!(Names::of(["9lives"], RULE).get("9lives"), names.get("9lives"), "other tools have no effect");
    }

    #[test]
    fn a_reserved_name_is_given_to_no_tool() {
        let names = Names::beside(&["find"], ["find", "find_file"], RULE);
        assert_eq!(names.get("find_file"), "find_file");
        assert!(names.get("find").starts_with("find_"), "{names:?}");
    }

    #[test]
    fn a_tool_cannot_take_the_rewritten_name_of_another() {
        let taken = Names::of(["a b"], RULE).get("a b").to_owned();
        let names = Names::of(["a b", &taken], RULE);
        assert_eq!(names.get(&taken), taken);
        assert_ne!(names.get("a b"), taken);
        assert!(RULE.accepts(names.get("a b")));
    }
}
