//! Words for commands that a person pastes into a shell.

use std::path::Path;

use super::{from_here, one_line};

/// Characters with a meaning in double quotes for PowerShell or the Windows command prompt.
const READ_IN_QUOTES: [char; 7] = ['"', '\u{201c}', '\u{201d}', '\u{201e}', '$', '`', '%'];

/// Formats a word for a command that a person pastes into a shell.
pub fn shell_word(text: &str) -> String {
    if cfg!(windows) { windows_word(text) } else { posix_word(text) }
}

/// Formats a word without a control character in quotes, also where it needs none.
pub fn quoted_word(text: &str) -> String {
    match cfg!(windows) && !text.contains(READ_IN_QUOTES) {
        true => format!("\"{text}\""),
        false if cfg!(windows) => format!("'{}'", doubled(text)),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Doubles each character that ends a text in single quotes for PowerShell, which other shells read as no quote at all.
fn doubled(text: &str) -> String {
    let ends = |c: char| matches!(c, '\'' | '\u{2018}'..='\u{201b}');
    text.chars().flat_map(|c| std::iter::repeat_n(c, if ends(c) { 2 } else { 1 })).collect()
}

fn posix_word(text: &str) -> String {
    match is_plain(text, "_-./:@=,+") {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Formats a word that both shells of Windows read alike. Characters that they would read differently are escaped, and the
/// command then names nothing that exists.
fn windows_word(text: &str) -> String {
    if is_plain(text, r"_-./:=+\") {
        return text.to_owned();
    }
    let escaped = |c: char| match READ_IN_QUOTES.contains(&c) || c.is_control() {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    // Programs read `\"` as a quote.
    let end = "\\".repeat(text.len() - text.trim_end_matches('\\').len());
    format!("\"{}{end}\"", text.chars().map(escaped).collect::<String>())
}

fn is_plain(text: &str, others: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Formats a path of a stranger for such a command, relative to the current directory. Control characters are escaped.
pub fn shell_path(path: &Path) -> String {
    shell_word(&one_line(&from_here(path).to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_needed() {
        assert_eq!(posix_word("oci://a.example/b:1"), "oci://a.example/b:1");
        assert_eq!(posix_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(posix_word(""), "''");
    }

    #[test]
    fn words_are_read_alike_by_both_shells_of_windows() {
        assert_eq!(windows_word(r"C:\a\b-c.md"), r"C:\a\b-c.md");
        assert_eq!(windows_word("it's & (a) "), r#""it's & (a) ""#);
        assert_eq!(windows_word(r"C:\a b\"), r#""C:\a b\\""#);
        assert_eq!(windows_word("$(x) %y% \u{201d}"), r#""\u{24}(x) \u{25}y\u{25} \u{201d}""#);
        assert_eq!(windows_word(""), "\"\"");
    }

    #[cfg(unix)]
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
