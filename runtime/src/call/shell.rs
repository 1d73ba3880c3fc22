//! Flags that a person pastes into the shell of the system. Their values can be a guest's text.

/// Shells of an operating system.
#[derive(Debug, Clone, Copy)]
enum Shell {
    /// Any shell after the POSIX standard.
    Posix,
    /// PowerShell and the command prompt of Windows: a word is written so that both read it alike.
    Windows,
}

impl Shell {
    const HERE: Self = if cfg!(windows) { Self::Windows } else { Self::Posix };

    /// Returns `true` if a character needs no quotes.
    fn is_plain(self, c: char) -> bool {
        let others = match self {
            Self::Posix => "_./@:+,-",
            Self::Windows => r"_./:+-\",
        };
        c.is_ascii_alphanumeric() || others.contains(c)
    }

    /// Returns a text in quotes; `None` if no quotes can hold it.
    fn quoted(self, text: &str) -> Option<String> {
        let ends_quotes = match self {
            Self::Posix => ['\''].as_slice(),
            // Quotes that PowerShell reads as `"`, and the starts of variables and escapes.
            Self::Windows => &['"', '\u{201c}', '\u{201d}', '\u{201e}', '$', '`', '%'],
        };
        if text.contains(ends_quotes) || text.chars().any(char::is_control) {
            return None;
        }
        Some(match self {
            Self::Posix => format!("'{text}'"),
            // Programs read `\"` as a quote.
            Self::Windows => format!("\"{text}{}\"", "\\".repeat(text.len() - text.trim_end_matches('\\').len())),
        })
    }

    fn flag(self, flag: &str, value: &str) -> Option<String> {
        match value.chars().all(|c| self.is_plain(c)) {
            true => Some(format!("{flag}={value}")),
            false => Some(format!("{flag}={}", self.quoted(value)?)),
        }
    }
}

/// Returns a flag with its value, safe to paste into a shell; `None` if no quotes can hold the value.
pub(crate) fn pasted(flag: &str, value: &str) -> Option<String> {
    Shell::HERE.flag(flag, value)
}

#[cfg(test)]
mod tests {
    use super::Shell::{Posix, Windows};

    #[test]
    fn nothing_that_a_guest_names_leaves_the_quotes_of_a_flag() {
        let flag = |value: &str| Posix.flag("--allow-read", value);
        assert_eq!(flag("/data/a-b_c.d").as_deref(), Some("--allow-read=/data/a-b_c.d"));
        assert_eq!(flag("/a b/$(x)`y`;").as_deref(), Some("--allow-read='/a b/$(x)`y`;'"));
        for value in ["/a'b", "/a\nb", "/a\u{1b}[31m", "/'`x`'"] {
            assert_eq!(flag(value), None, "{value:?}");
        }
    }

    #[test]
    fn a_flag_is_read_alike_by_both_shells_of_windows() {
        let flag = |value: &str| Windows.flag("--allow-read", value);
        assert_eq!(flag(r"C:\data\a-b").as_deref(), Some(r"--allow-read=C:\data\a-b"));
        assert_eq!(flag(r"C:\it's (a) & b\").as_deref(), Some(r#"--allow-read="C:\it's (a) & b\\""#));
        for value in ["a\"b", "a\u{201d};b", "$(x)", "`x", "%PATH%", "a\nb"] {
            assert_eq!(flag(value), None, "{value:?}");
        }
    }
}
