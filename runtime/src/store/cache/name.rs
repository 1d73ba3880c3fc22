//! File names of cache entries. A file is an entry only if its name has exactly this form, so that no other file of the
//! folder is ever removed.

use serde::Serialize;

/// Prefix of a digest outside of file names.
const DIGEST_PREFIX: &str = "sha256:";
/// Length of a SHA-256 in hexadecimal digits.
const DIGEST_LEN: usize = 64;
/// Length of a variant in hexadecimal digits.
const VARIANT_LEN: usize = 16;

/// Kind of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EntryKind {
    /// Compiled code of a component.
    Component,
    /// Compiled code of a core module.
    Module,
}

impl EntryKind {
    const ALL: [Self; 2] = [Self::Component, Self::Module];

    /// Returns the name of the kind, such as `component`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Module => "module",
        }
    }

    /// End of the names of this kind. No two kinds have the same.
    fn suffix(self) -> &'static str {
        match self {
            Self::Component => ".cwasm",
            Self::Module => "-module.cwasm",
        }
    }
}

/// File name of an entry: `DIGEST-VARIANT` and the suffix of the kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryName(String);

impl EntryName {
    /// Creates the name of the entry that was made from a file with this digest, `sha256:HEX`. Entries that were made from
    /// the same file in different ways differ in their variant.
    pub(crate) fn new(digest: &str, variant: u64, kind: EntryKind) -> Self {
        let digest = digest.trim_start_matches(DIGEST_PREFIX);
        Self(format!("{digest}-{variant:0VARIANT_LEN$x}{}", kind.suffix()))
    }

    /// Parses a file name; `None` if it is not the name of an entry.
    pub(super) fn parse(name: &str) -> Option<(Self, EntryKind)> {
        let (digest, rest) = name.split_at_checked(DIGEST_LEN)?;
        let (variant, suffix) = rest.strip_prefix('-')?.split_at_checked(VARIANT_LEN)?;
        let kind = EntryKind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (is_hex(digest) && is_hex(variant)).then(|| (Self(name.to_owned()), kind))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Digest of the file that the entry was made from, as `sha256:HEX`.
    pub(super) fn digest(&self) -> String {
        let digest = self.0.get(..DIGEST_LEN).unwrap_or_default();
        format!("{DIGEST_PREFIX}{digest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_as_it_was_made() {
        let digest = format!("{DIGEST_PREFIX}{}", "0123456789abcdef".repeat(4));
        for kind in EntryKind::ALL {
            for variant in [0, 7, u64::MAX] {
                let name = EntryName::new(&digest, variant, kind);
                assert_eq!(EntryName::parse(name.as_str()), Some((name.clone(), kind)));
                assert_eq!(name.digest(), digest);
            }
        }
    }

    #[test]
    fn no_other_name_is_an_entry() {
        let name = EntryName::new(&"ab".repeat(32), 1, EntryKind::Component).0;
        assert!(EntryName::parse(&name).is_some());
        for other in [
            "key".to_owned(),
            "lock".to_owned(),
            ".cwasm".to_owned(),
            name.to_uppercase(),
            format!(".{name}"),
            format!("{name}~"),
            name.replace(".cwasm", ""),
            name.replace(".cwasm", "-other.cwasm"),
            name.replacen('a', "g", 1),
            name.replacen("ab", "ä", 1),
            name.replace('-', "_"),
            name[1..].to_owned(),
            format!("../{}", &name[3..]),
        ] {
            assert_eq!(EntryName::parse(&other), None, "{other}");
        }
    }
}
