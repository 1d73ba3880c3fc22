//! File names of cache entries. A file is an entry only if its name has exactly this form, so that no other file of the
//! folder is ever removed.

use serde::Serialize;

/// Prefix of a digest outside file names.
const DIGEST_PREFIX: &str = "sha256:";
/// Length of a SHA-256 in hexadecimal digits.
const DIGEST_LEN: usize = 64;
/// Length of a variant in hexadecimal digits.
const VARIANT_LEN: usize = 16;
/// Folder of bundles and downloads, within the cache folder.
pub(super) const BUNDLES: &str = "bundles";

/// Kind of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EntryKind {
    /// Compiled code of a component.
    Component,
    /// Compiled code of a core module.
    Module,
    /// Bundle that was pulled from a registry.
    Bundle,
    /// Blob of a bundle that is not completely downloaded.
    Download,
}

impl EntryKind {
    /// Kinds with the beginnings and ends of their names. No two kinds share a name.
    const FORMS: [(Self, &str, &str); 5] = [
        (Self::Component, "", ".cwasm"),
        (Self::Module, "", "-module.cwasm"),
        (Self::Bundle, "sha256-", ".tar"),
        (Self::Download, "blob-", ""),
        (Self::Download, "blob-", PARTIAL),
    ];

    /// Returns the name of the kind, such as `component`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Module => "module",
            Self::Bundle => "bundle",
            Self::Download => "download",
        }
    }

    /// `true` for compiled code, whose names have a variant.
    fn is_code(self) -> bool {
        matches!(self, Self::Component | Self::Module)
    }
}

/// End of a download's name without its last bytes.
const PARTIAL: &str = ".partial";

/// File name of an entry, relative to the cache's folder: `DIGEST-VARIANT` and the end of the kind for compiled code;
/// `bundles/` with the beginning of the kind, the digest and its end for the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryName(String);

impl EntryName {
    /// Creates the name of the compiled code for a file with this digest, `sha256:HEX`. Code that was compiled from the
    /// same file in different ways differs in its variant.
    pub(crate) fn new(digest: &str, variant: u64, kind: EntryKind) -> Self {
        let digest = digest.trim_start_matches(DIGEST_PREFIX);
        let end = EntryKind::FORMS.iter().find(|form| form.0 == kind).map_or("", |form| form.2);
        Self(format!("{digest}-{variant:0VARIANT_LEN$x}{end}"))
    }

    /// Creates the name of a bundle with this digest, `sha256:HEX`; `None` if it is not a digest.
    pub(super) fn bundle(digest: &str) -> Option<Self> {
        hex(digest).map(|hex| Self(format!("{BUNDLES}/sha256-{hex}.tar")))
    }

    /// Creates the names of a download with this digest, `sha256:HEX`: while it is incomplete, and then.
    pub(super) fn download(digest: &str) -> Option<(Self, Self)> {
        let complete = hex(digest).map(|hex| Self(format!("{BUNDLES}/blob-{hex}")))?;
        Some((Self(format!("{}{PARTIAL}", complete.0)), complete))
    }

    /// Parses a file name in the cache folder; `None` if it is not the name of an entry.
    pub(super) fn parse(name: &str) -> Option<(Self, EntryKind)> {
        Self::parse_in("", name)
    }

    /// Parses a file name in the bundle folder; `None` if it is not the name of an entry.
    pub(super) fn parse_bundle(name: &str) -> Option<(Self, EntryKind)> {
        Self::parse_in(BUNDLES, name)
    }

    fn parse_in(folder: &str, name: &str) -> Option<(Self, EntryKind)> {
        let is_form = |(kind, start, end): &(EntryKind, &str, &str)| {
            let rest = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            kind.is_code() == folder.is_empty() && rest.is_some_and(|rest| is_stem(rest, *kind))
        };
        let kind = EntryKind::FORMS.iter().find(|form| is_form(form))?.0;
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        Some((Self(path), kind))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Digest of the entry, or of the file that it was made from, as `sha256:HEX`.
    pub(super) fn digest(&self) -> String {
        let name = self.0.rsplit('/').next().unwrap_or_default();
        let starts = EntryKind::FORMS.iter().map(|form| form.1).filter(|start| name.starts_with(start));
        let start = starts.map(str::len).max().unwrap_or_default();
        format!("{DIGEST_PREFIX}{}", name.get(start..start + DIGEST_LEN).unwrap_or_default())
    }
}

/// Returns the digits of a digest, `sha256:HEX`.
fn hex(digest: &str) -> Option<&str> {
    digest.strip_prefix(DIGEST_PREFIX).filter(|hex| is_digest(hex))
}

/// `true` if `stem` is the middle of such a name.
fn is_stem(stem: &str, kind: EntryKind) -> bool {
    match stem.split_at_checked(DIGEST_LEN) {
        Some((digest, variant)) if kind.is_code() => {
            let variant = variant.strip_prefix('-').filter(|variant| variant.len() == VARIANT_LEN);
            is_digest(digest) && variant.is_some_and(is_hex)
        }
        _ => is_digest(stem),
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_LEN && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_as_it_was_made() {
        let digest = format!("{DIGEST_PREFIX}{}", "0123456789abcdef".repeat(4));
        for kind in [EntryKind::Component, EntryKind::Module] {
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

    #[test]
    fn bundles_and_downloads_have_names_in_a_folder_of_their_own() {
        let digest = format!("{DIGEST_PREFIX}{}", "0123456789abcdef".repeat(4));
        let (partial, complete) = EntryName::download(&digest).unwrap();
        let bundle = EntryName::bundle(&digest).unwrap();
        for (name, kind) in
            [(&bundle, EntryKind::Bundle), (&partial, EntryKind::Download), (&complete, EntryKind::Download)]
        {
            let file = name.as_str().strip_prefix("bundles/").unwrap();
            assert_eq!(EntryName::parse_bundle(file), Some((name.clone(), kind)));
            assert_eq!(EntryName::parse(file), None, "not in the other folder");
            assert_eq!(name.digest(), digest);
        }
        let code = EntryName::new(&digest, 7, EntryKind::Module);
        assert_eq!(EntryName::parse_bundle(code.as_str()), None);
        for other in ["", "sha256:", "sha256:../../x", &digest.to_uppercase(), &digest[1..], &format!("{digest}0")] {
            assert_eq!((EntryName::bundle(other), EntryName::download(other)), (None, None), "{other}");
        }
        let hex = &digest[7..];
        for other in [format!("sha256-{hex}.tar~"), format!("sha256-{hex}"), format!("blob-{hex}.tar"), hex.to_owned()]
        {
            assert_eq!(EntryName::parse_bundle(&other), None, "{other}");
        }
    }
}
