//! Bounds on the texts of a bundle's metadata: names, versions, descriptions, licences, addresses and annotations.

use toolcrib_foundation::text::{MAX_NAME, shown};

use crate::path::is_invisible;

/// Maximum length of a description, an address, a licence expression or an annotation's value in bytes.
pub const MAX_TEXT_LENGTH: usize = 4096;
/// Maximum length of an annotation's key in bytes.
pub const MAX_KEY_LENGTH: usize = 256;

/// Text of the metadata that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {text:?} is refused: {fault}")]
#[non_exhaustive]
pub struct TextError {
    /// Field of the metadata.
    pub field: &'static str,
    /// The first characters of the text.
    pub text: String,
    /// Reason of the refusal.
    pub fault: TextFault,
}

/// Reason why a text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextFault {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text has too many bytes.
    #[error("it is longer than {max} bytes")]
    TooLong {
        /// Maximum length in bytes.
        max: usize,
    },
    /// A character is not allowed.
    #[error("it contains {0:?}")]
    Character(char),
    /// The text does not begin as it should.
    #[error("expected {0}")]
    Syntax(&'static str),
}

/// Kind of text, which defines its bound and its characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// Name of a bundle: lower-case letters and digits, separated by `.`, `_`, `-` or `/`.
    Name,
    /// Name of a tool: any visible characters.
    ToolName,
    /// Version of a bundle: letters, digits, `.`, `-`, `+` and `_`.
    Version,
    /// Description: visible characters and line breaks.
    Prose,
    /// Licence expression in the characters of SPDX.
    License,
    /// Absolute address with a scheme other than `file`.
    Address,
    /// Package URL.
    PackageUrl,
    /// Key of an annotation.
    Key,
}

impl Text {
    /// Checks `text`, which is the value of `field`.
    pub(crate) fn check(self, field: &'static str, text: &str) -> Result<(), TextError> {
        self.fault(text).map_or(Ok(()), |fault| Err(TextError { field, text: shown(text), fault }))
    }

    /// Returns the first fault of `text`.
    fn fault(self, text: &str) -> Option<TextFault> {
        let max = match self {
            Self::Name | Self::ToolName | Self::Version => MAX_NAME,
            Self::Prose | Self::License | Self::Address | Self::PackageUrl => MAX_TEXT_LENGTH,
            Self::Key => MAX_KEY_LENGTH,
        };
        if text.is_empty() && self != Self::Prose {
            return Some(TextFault::Empty);
        }
        if text.len() > max {
            return Some(TextFault::TooLong { max });
        }
        if let Some(c) = text.chars().find(|c| !self.allows(*c)) {
            return Some(TextFault::Character(c));
        }
        let edge = |c: char| !c.is_ascii_alphanumeric();
        match self {
            Self::Name if text.starts_with(edge) || text.ends_with(edge) => {
                Some(TextFault::Syntax("a letter or digit at both ends"))
            }
            Self::ToolName if text.trim() != text => Some(TextFault::Syntax("a visible character at both ends")),
            Self::Address => match text.split_once("://") {
                Some(("https" | "http" | "ssh" | "git" | "git+https" | "git+ssh", rest)) if !rest.is_empty() => None,
                _ => Some(TextFault::Syntax("an address with a scheme such as `https://`")),
            },
            Self::PackageUrl if !text.starts_with("pkg:") => Some(TextFault::Syntax("`pkg:`")),
            _ => None,
        }
    }

    /// Returns `true` if the kind of text may contain `c`.
    fn allows(self, c: char) -> bool {
        match self {
            Self::Name => c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c),
            Self::ToolName => !is_invisible(c),
            Self::Version => c.is_ascii_alphanumeric() || ".-+_".contains(c),
            // Variation selectors and joiners are parts of emoji and of several scripts.
            Self::Prose => {
                !is_invisible(c) || matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
            }
            Self::License => c.is_ascii_alphanumeric() || ".-+:() ".contains(c),
            Self::Address | Self::PackageUrl => c.is_ascii_graphic(),
            Self::Key => c.is_ascii_alphanumeric() || "._-/".contains(c),
        }
    }
}

/// Returns the text on one line with a space for each character that no text of metadata may have, cut to `max` bytes.
#[must_use]
pub fn visible(text: &str, max: usize) -> String {
    let visible: String = text.chars().map(|c| if is_invisible(c) { ' ' } else { c }).collect();
    let end = visible.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= max).last();
    visible[..end.unwrap_or(0)].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_texts_are_accepted() {
        for (kind, text) in [
            (Text::Name, "acme/weather-tools_2"),
            (Text::ToolName, "fs_read"),
            (Text::Version, "1.0.0-rc.1+build"),
            (Text::Prose, ""),
            (Text::Prose, "Reads the weather.\n\tIn 日本語 too \u{2600}\u{fe0f}"),
            (Text::License, "(MIT OR Apache-2.0) AND LicenseRef-x"),
            (Text::Address, "https://example.com/a?b#c"),
            (Text::Key, "com.example.key"),
        ] {
            assert_eq!(kind.check("text", text), Ok(()));
        }
    }

    #[test]
    fn each_bound_is_kept() {
        for kind in [Text::Name, Text::ToolName, Text::Version, Text::Prose, Text::License, Text::Key] {
            let fault = (0..).map(|n| "a".repeat(1 << n)).find_map(|text| kind.fault(&text));
            assert!(matches!(fault, Some(TextFault::TooLong { .. })), "{kind:?}");
        }
        let address = format!("https://{}", "a".repeat(MAX_TEXT_LENGTH));
        assert_eq!(Text::Address.fault(&address), Some(TextFault::TooLong { max: MAX_TEXT_LENGTH }));
    }

    #[test]
    fn misleading_characters_and_host_paths_are_refused() {
        assert_eq!(Text::Prose.fault("a\u{202e}b"), Some(TextFault::Character('\u{202e}')));
        assert_eq!(Text::Prose.fault("\u{1b}[31m"), Some(TextFault::Character('\u{1b}')));
        assert_eq!(Text::ToolName.fault("a\nb"), Some(TextFault::Character('\n')));
        for address in ["/home/me/project", "file:///home/me", "C:\\project", "project", "https://"] {
            assert!(Text::Address.fault(address).is_some(), "{address}");
        }
        for name in ["Weather", "-a", "a/", "..", "a b"] {
            assert!(Text::Name.fault(name).is_some(), "{name}");
        }
    }
}
