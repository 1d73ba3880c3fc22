//! Words for commands that a person pastes into a shell.

use std::path::Path;

use super::{from_here, one_line};

/// Formats a word for a command that a person pastes into a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@=,+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Formats a path of a stranger for such a command, relative to the current folder. Control characters are escaped.
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(&one_line(&from_here(path).to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_needed() {
        assert_eq!(shell_word("oci://a.example/b:1"), "oci://a.example/b:1");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn a_path_of_a_stranger_is_one_word() {
        for (path, word) in [
            ("a/tools.json", "a/tools.json"),
            ("x$(touch PWNED)/w.tar", "'x$(touch PWNED)/w.tar'"),
            ("a b`c`\u{1b}", "'a b`c`\\u{1b}'"),
        ] {
            assert_eq!(shell_path(Path::new(path)), word);
        }
    }
}
