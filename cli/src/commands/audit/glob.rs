//! Patterns over names: `*` stands for any characters, `?` for one, every other character for itself.

/// Whether a name matches a pattern as a whole.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last `*`, and how much of the name it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[read] => (at, read) = (at + 1, read + 1),
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, read) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_whole_name() {
        for (pattern, name, wanted) in [
            ("fs_*", "fs_read_file", true),
            ("*_file", "fs_read_file", true),
            ("fs_*_f*e", "fs_read_file", true),
            ("f?_stat", "fs_stat", true),
            ("?", "ä", true),
            ("*", "", true),
            ("", "", true),
            ("fs_stat", "fs_stat", true),
            ("fs_", "fs_stat", false),
            ("s*", "fs_stat", false),
            ("?", "", false),
            ("a*b*c", "a-b-b", false),
            ("FS_*", "fs_stat", false),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
