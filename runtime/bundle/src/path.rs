//! Relative paths inside a bundle, restricted to names that every operating system can store and a person can read.
//!
//! A bundle is never unpacked by this crate, but other tools unpack it, and people read its paths in permission prompts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolcrib_foundation::text::{MAX_NAME, shown};
use unicode_normalization::UnicodeNormalization;

/// Maximum length of a path in bytes.
pub const MAX_PATH_LENGTH: usize = 240;
/// Maximum number of components per path.
pub const MAX_PATH_COMPONENTS: usize = 16;

/// Device names of Windows, which are reserved in every folder and with every extension.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Relative path inside a bundle: components separated by `/`, in Unicode normalization form C.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundlePath(String);

/// Reason why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// The path or a component of it is empty.
    #[error("it has an empty component")]
    Empty,
    /// The path has too many bytes.
    #[error("it is longer than {MAX_PATH_LENGTH} bytes")]
    TooLong,
    /// A component has too many bytes.
    #[error("a component is longer than {MAX_NAME} bytes")]
    ComponentTooLong,
    /// The path has too many components.
    #[error("it has more than {MAX_PATH_COMPONENTS} components")]
    TooDeep,
    /// The path begins with `/`.
    #[error("it is absolute")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("it contains `.` or `..`")]
    Dots,
    /// A character is not allowed in file names of Windows, among them `\` and `:`.
    #[error("it contains {0:?}, which is not portable")]
    NotPortable(char),
    /// A character is invisible, a control character, a bidirectional control or not assigned to text.
    #[error("it contains the invisible or control character U+{:04X}", u32::from(*.0))]
    Invisible(char),
    /// A component begins or ends with a space, or ends with a dot.
    #[error("a component begins or ends with a space, or ends with a dot")]
    Edge,
    /// A component is a device name of Windows.
    #[error("a component is a device name on Windows")]
    Reserved,
    /// The path is not in Unicode normalization form C.
    #[error("it is not in Unicode normalization form C")]
    NotNormalized,
}

/// Path that cannot be used in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {path:?} is refused: {fault}")]
#[non_exhaustive]
pub struct PathError {
    /// The first characters of the path.
    pub path: String,
    /// Reason why it is refused.
    pub fault: PathFault,
}

impl BundlePath {
    /// Checks and copies `path`.
    ///
    /// # Errors
    ///
    /// Returns the first [`PathFault`] of the path.
    pub fn new(path: &str) -> Result<Self, PathError> {
        match check(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(fault) => Err(PathError { path: shown(path), fault }),
        }
    }

    /// Copies a path that is known to be valid.
    pub(crate) fn from_valid(path: &'static str) -> Self {
        debug_assert!(check(path).is_ok());
        Self(path.to_owned())
    }

    /// Returns the text of the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a key that is equal for paths that a case-insensitive or normalizing file system cannot tell apart.
    fn key(&self) -> String {
        let folded = self.0.nfkc().collect::<String>().to_uppercase().to_lowercase();
        folded.nfkc().collect()
    }
}

/// Set of one bundle's paths, without two that the same file could have.
#[derive(Debug, Default)]
pub(crate) struct PathSet(BTreeMap<String, (BundlePath, bool)>);

impl PathSet {
    /// Adds the path of a file. Returns the path that it collides with: an equal one in another case or normalization, a
    /// file that is a parent folder of it, or a folder of the same name.
    pub(crate) fn insert(&mut self, path: &BundlePath) -> Result<(), BundlePath> {
        let key = path.key();
        if let Some((other, _)) = self.0.get(&key) {
            return Err(other.clone());
        }
        let folders = key.match_indices('/').map(|(end, _)| key[..end].to_owned()).collect::<Vec<_>>();
        for folder in &folders {
            if let Some((other, true)) = self.0.get(folder) {
                return Err(other.clone());
            }
        }
        for folder in folders {
            self.0.entry(folder).or_insert_with(|| (path.clone(), false));
        }
        self.0.insert(key, (path.clone(), true));
        Ok(())
    }
}

/// Returns the first fault of `path`.
fn check(path: &str) -> Result<(), PathFault> {
    if path.len() > MAX_PATH_LENGTH {
        return Err(PathFault::TooLong);
    }
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    if path.split('/').count() > MAX_PATH_COMPONENTS {
        return Err(PathFault::TooDeep);
    }
    if let Some(c) = path.chars().find(|c| is_invisible(*c)) {
        return Err(PathFault::Invisible(c));
    }
    if let Some(c) = path.chars().find(|c| r#"\:*?"<>|"#.contains(*c)) {
        return Err(PathFault::NotPortable(c));
    }
    path.split('/').try_for_each(check_component)?;
    if path.nfc().ne(path.chars()) {
        return Err(PathFault::NotNormalized);
    }
    Ok(())
}

/// Returns the first fault of one component.
fn check_component(component: &str) -> Result<(), PathFault> {
    if component.is_empty() {
        return Err(PathFault::Empty);
    }
    if component == "." || component == ".." {
        return Err(PathFault::Dots);
    }
    if component.len() > MAX_NAME {
        return Err(PathFault::ComponentTooLong);
    }
    if component.starts_with(char::is_whitespace)
        || component.ends_with(char::is_whitespace)
        || component.ends_with('.')
    {
        return Err(PathFault::Edge);
    }
    let stem = component.split('.').next().unwrap_or(component).trim_end().nfkc().collect::<String>().to_lowercase();
    let port =
        |prefix| stem.strip_prefix(prefix).is_some_and(|n: &str| n.len() == 1 && n.as_bytes()[0].is_ascii_digit());
    if RESERVED.contains(&stem.as_str()) || port("com") || port("lpt") {
        return Err(PathFault::Reserved);
    }
    Ok(())
}

/// Returns `true` for control characters, bidirectional controls, characters without a glyph, private and unassigned ones.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{ffff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

impl FromStr for BundlePath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        Self::new(path)
    }
}

impl fmt::Display for BundlePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for BundlePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for BundlePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(path: &str) -> PathFault {
        BundlePath::new(path).unwrap_err().fault
    }

    #[test]
    fn ordinary_paths_are_accepted() {
        let component = "a".repeat(MAX_NAME);
        let deep = vec!["a"; MAX_PATH_COMPONENTS].join("/");
        for path in [
            "a",
            "tools/bin/read.wasm",
            ".hidden",
            "Übung/naïve.md",
            "工具.md",
            "a..b",
            "com",
            "com10",
            "console",
            &component,
            &deep,
        ] {
            assert_eq!(BundlePath::new(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn paths_that_leave_the_bundle_are_refused() {
        for path in ["..", "../a", "a/..", "a/../b", ".", "a/./b"] {
            assert_eq!(fault(path), PathFault::Dots, "{path}");
        }
        for path in ["/", "/etc/passwd", "//server/share"] {
            assert_eq!(fault(path), PathFault::Absolute, "{path}");
        }
        for path in ["", "a//b", "a/"] {
            assert_eq!(fault(path), PathFault::Empty, "{path}");
        }
        assert_eq!(fault("a\\b"), PathFault::NotPortable('\\'));
        assert_eq!(fault("C:/a"), PathFault::NotPortable(':'));
        assert_eq!(fault("c:a"), PathFault::NotPortable(':'));
        assert_eq!(fault("file.txt:stream"), PathFault::NotPortable(':'));
    }

    #[test]
    fn invisible_control_and_bidirectional_characters_are_refused() {
        for c in [
            '\0',
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
            '\u{fffd}',
        ] {
            assert_eq!(fault(&format!("a{c}b")), PathFault::Invisible(c));
        }
    }

    #[test]
    fn device_names_of_windows_are_refused() {
        for path in ["nul", "NUL", "a/Con.txt", "aux.tar.gz", "com1", "LPT9.md", "com\u{b9}", "conin$", "nul .txt"] {
            assert_eq!(fault(path), PathFault::Reserved, "{path}");
        }
        for path in ["a.", "a /b", " a", "a/b ", "a\u{3000}"] {
            assert_eq!(fault(path), PathFault::Edge, "{path}");
        }
    }

    #[test]
    fn long_and_deep_paths_are_refused() {
        assert_eq!(fault(&"a".repeat(MAX_PATH_LENGTH + 1)), PathFault::TooLong);
        assert_eq!(fault(&"a".repeat(MAX_NAME + 1)), PathFault::ComponentTooLong);
        assert_eq!(fault(&vec!["a"; MAX_PATH_COMPONENTS + 1].join("/")), PathFault::TooDeep);
    }

    #[test]
    fn decomposed_text_is_refused() {
        assert_eq!(fault("e\u{301}"), PathFault::NotNormalized);
    }

    #[test]
    fn paths_that_one_file_could_have_collide() {
        let collides = |first: &str, second: &str| {
            let mut set = PathSet::default();
            set.insert(&first.parse().unwrap()).unwrap();
            set.insert(&second.parse().unwrap()).is_err()
        };
        for (first, second) in
            [("a", "a"), ("Read.md", "read.MD"), ("straße", "STRASSE"), ("ﬁle", "file"), ("a", "A/b"), ("a/b", "A")]
        {
            assert!(collides(first, second), "{first} {second}");
            assert!(collides(second, first), "{second} {first}");
        }
        assert!(!collides("a/b", "a/c"));
        assert!(!collides("a", "ab"));
    }
}
