//! File names as each operating system's file systems read them: spellings that mean the same file, and spellings that
//! mean another file than they say. The rules are functions over text, so that each system tests the rules of all.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Base names that Windows reads as devices in every folder, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// Devices with a number, from 0 to 9 or one of the superscripts that Windows reads as numbers.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
/// Maximum length of the base name and the extension in a short name.
const MAX_SHORT: (usize, usize) = (8, 3);
/// Prefixes of paths that Windows passes on without reading them, and the start that remains without the prefix.
const VERBATIM: [(&str, &str); 2] = [(r"\\?\UNC\", r"\\"), (r"\\?\", "")];
/// macOS folder that shows the folders of the root again: `/Users` is `/System/Volumes/Data/Users`.
const DATA_VOLUME: &str = "/System/Volumes/Data";
/// Minimum length of a path without such a prefix that Windows programs refuse.
const MAX_PLAIN_PATH: usize = 260;

/// Rules for reading names in the file systems of an operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRules {
    /// Different spellings are different names.
    Exact,
    /// Spellings that differ in case or in their Unicode normalization are one name, as on macOS.
    Folded,
    /// Case is ignored, `\` separates names, and a name can also mean a stream, a device or the long name of a file, as on
    /// Windows.
    Windows,
}

impl NameRules {
    /// Rules of this system.
    pub(crate) const HERE: Self = match (cfg!(windows), cfg!(target_vendor = "apple")) {
        (true, _) => Self::Windows,
        (false, true) => Self::Folded,
        (false, false) => Self::Exact,
    };

    /// Folds a path's names, so that spellings of one file are equal; `None` if these rules keep spellings apart. `.`
    /// and `..` remain.
    pub(crate) fn fold_path(self, path: &str) -> Option<String> {
        let name = |name: &str| match (self, name) {
            (_, "." | "..") => name.to_owned(),
            (Self::Windows, name) => folded(name),
            (_, name) => fold_case(name),
        };
        self.fold_parts(path, name)
    }

    /// Folds the names of a glob over paths like [`NameRules::fold_path`], without dropping any character.
    pub(crate) fn fold_glob(self, glob: &str) -> Option<String> {
        self.fold_parts(glob, fold_case)
    }

    fn fold_parts(self, path: &str, fold: impl Fn(&str) -> String) -> Option<String> {
        let separators: &[char] = match self {
            Self::Exact => return None,
            Self::Folded => &['/'],
            Self::Windows => &['/', '\\'],
        };
        let parts: Vec<String> = path.split(separators).map(fold).collect();
        Some(parts.join("/"))
    }

    /// Returns the value of a variable. On Windows its name has no case.
    pub(crate) fn variable<'a>(self, environment: &'a HashMap<String, String>, name: &str) -> Option<&'a String> {
        let in_another_case = || environment.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        environment.get(name).or_else(|| (self == Self::Windows).then(in_another_case)?.map(|(_, value)| value))
    }

    /// Explains why a folder at such a path is never granted; `None` if its path is no reason. `path` is the path of
    /// the open folder, as [`plain`] returns it. A share of this machine that is not administrative looks like another
    /// machine's unless it has a loopback name: an operator who grants it grants its folders under that name.
    pub(crate) fn never_granted(self, path: &str) -> Option<&'static str> {
        if self != Self::Windows {
            return None;
        }
        let share = path.strip_prefix(r"\\")?;
        if share.starts_with(['.', '?']) {
            return Some("it is the path of a device; name the folder by its drive");
        }
        let mut names = share.split('\\');
        let (machine, folder) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let is_loopback =
            machine.eq_ignore_ascii_case("localhost") || machine.starts_with("127.") || machine.starts_with("--1.");
        let is_administrative = folder.ends_with('$');
        (is_loopback || is_administrative)
            .then_some("a share of a whole drive or of this machine shows its folders under another name; name the folder by its drive")
    }

    /// Returns a path without the folder under which macOS shows the volume with the data of its users a second time.
    pub(crate) fn without_second_root(self, path: PathBuf) -> PathBuf {
        match path.strip_prefix(DATA_VOLUME) {
            Ok(rest) if self == Self::Folded => Path::new("/").join(rest),
            _ => path,
        }
    }

    /// Explains why a path could mean another file than it says; `None` if it means what it says.
    pub(crate) fn misread(self, path: &str) -> Option<&'static str> {
        if self != Self::Windows {
            return None;
        }
        let is_separator = |c: char| c == '/' || c == '\\';
        if path.starts_with(is_separator) && path[1..].starts_with(is_separator) {
            return Some("it is the path of a device or of another machine");
        }
        path.split(is_separator).filter(|name| !matches!(*name, "" | "." | "..")).find_map(misread_name)
    }
}

/// Explains why Windows could read a name as another file.
fn misread_name(name: &str) -> Option<&'static str> {
    if name.contains(':') {
        return Some("`:` names a stream or a drive on this system");
    }
    if name.contains(['*', '?', '"', '<', '>', '|']) || name.chars().any(char::is_control) {
        return Some("it has a character that no name has on this system");
    }
    if name.ends_with(['.', ' ']) {
        return Some("a dot or a space at the end of a name is dropped on this system");
    }
    let (base, extension) = name.split_once('.').unwrap_or((name, ""));
    if is_device(base.trim_end_matches(' ')) {
        return Some("it is the name of a device on this system");
    }
    is_short(base, extension).then_some("it has the form of the short name of another file")
}

fn is_device(base: &str) -> bool {
    let base = base.to_ascii_lowercase();
    let is_number =
        |end: &str| matches!(end.chars().next(), Some('0'..='9' | '¹' | '²' | '³')) && end.chars().nth(1).is_none();
    DEVICES.contains(&base.as_str())
        || NUMBERED_DEVICES.iter().any(|device| base.strip_prefix(device).is_some_and(is_number))
}

/// Returns `true` for a name such as `PROGRA~1` or `TOOLS~1.JSO`, which a file with a longer name may have besides.
fn is_short(base: &str, extension: &str) -> bool {
    let (max_base, max_extension) = MAX_SHORT;
    let is_numbered =
        base.rsplit_once('~').is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()));
    is_numbered && base.chars().count() <= max_base && extension.chars().count() <= max_extension
}

/// Folds a name as the least strict file system does: without case, ignorable characters, alternate streams, and
/// trailing dots and spaces.
pub(crate) fn folded(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    fold_case(name).trim_end_matches(['.', ' ']).to_owned()
}

/// Folds the case, the normalization and the ignorable characters of a text.
fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_ignorable = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    let visible: String = text.nfd().filter(|c| !is_ignorable(c)).collect();
    // Some letters share their upper case with another letter, such as the long s. Each letter is folded by itself: the
    // final form of a sigma depends on the letters around it.
    visible.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

/// Returns the one absolute path of an existing file, without links and as people write it.
///
/// # Errors
///
/// The error of the system.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(plain)
}

/// Returns a path as people write it.
pub(crate) fn plain(path: PathBuf) -> PathBuf {
    path.to_str().and_then(without_prefix).map_or(path, PathBuf::from)
}

/// Returns a path of Windows as people write it, without `\\?\`; `None` if the path has no such prefix or means another file
/// without it.
fn without_prefix(path: &str) -> Option<String> {
    let (prefix, start) = VERBATIM.into_iter().find(|(prefix, _)| path.starts_with(prefix))?;
    let rest = &path[prefix.len()..];
    let names = match start {
        "" => {
            let (drive, names) = rest.split_once(r":\")?;
            (drive.len() == 1 && drive.is_ascii()).then_some(names)?
        }
        _ => rest,
    };
    // `/` is a character of a name after the prefix, and a separator without it. A short name means the same in both.
    let is_read_alike = |name: &str| match name {
        "." | ".." => false,
        name => misread_name(&name.replace('~', "-")).is_none(),
    };
    let is_plain = !names.contains('/') && names.split('\\').all(is_read_alike);
    (is_plain && rest.len() + start.len() < MAX_PLAIN_PATH).then(|| format!("{start}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::NameRules::{Exact, Folded, Windows};
    use super::*;

    #[test]
    fn spellings_of_one_file_are_equal_where_the_system_takes_them_for_one() {
        for spelling in ["SUB/X", "Sub/x", "sub/\u{200c}x", "\u{17f}ub/x"] {
            assert_eq!(Folded.fold_path(spelling).as_deref(), Some("sub/x"), "{spelling}");
            assert_eq!(Windows.fold_path(spelling).as_deref(), Some("sub/x"), "{spelling}");
            assert_eq!(Exact.fold_path(spelling), None);
        }
        for spelling in [r"SUB\X", "sub./x ", "sub/x::$DATA", "sub/x:other", r"sub\x.. ."] {
            assert_eq!(Windows.fold_path(spelling).as_deref(), Some("sub/x"), "{spelling}");
            assert_ne!(Folded.fold_path(spelling).as_deref(), Some("sub/x"), "{spelling}");
        }
        assert_eq!(Folded.fold_path("caf\u{e9}"), Folded.fold_path("CAFE\u{301}"));
        assert_eq!(Folded.fold_path(r"a\B").as_deref(), Some(r"a\b"), "no separator there");
        assert_eq!(Windows.fold_path(r".\..\A").as_deref(), Some("./../a"));
    }

    #[test]
    fn a_glob_keeps_its_stars_and_its_ends() {
        assert_eq!(Windows.fold_glob(r"SUB\*.").as_deref(), Some("sub/*."));
        assert_eq!(Windows.fold_glob("*:*").as_deref(), Some("*:*"), "it is no glob for everything");
        assert_eq!((Folded.fold_glob("É?").as_deref(), Exact.fold_glob("É?")), (Some("e\u{301}?"), None));
        assert_eq!(Folded.fold_glob("ΣΑΣ*"), Folded.fold_path("σασ*"));
    }

    #[test]
    fn names_that_windows_reads_as_another_file_are_known() {
        for path in [
            "x::$DATA",
            "sub/x:stream",
            "C:x",
            r"C:\x",
            "sub./x",
            r"sub \x",
            "x.",
            "... ",
            ".. /x",
            "nul",
            "sub/CON.txt",
            "aux .md",
            "com1",
            "LPT\u{b9}.txt",
            "conin$",
            "PROGRA~1/x",
            "TOOLS~1.JSO",
            "a~12",
            r"\\server\share",
            "//server/share",
            r"\\?\C:\x",
            r"\\.\pipe\x",
            r"/\server",
            "a?",
            "a\u{1}",
            "sub/a*b",
        ] {
            assert!(Windows.misread(path).is_some(), "{path}");
            assert_eq!((Exact.misread(path), Folded.misread(path)), (None, None), "{path}");
        }
        for path in [
            "",
            ".",
            "..",
            "/",
            "./../x",
            "/sub/x",
            r"sub\x",
            "sub/x.txt",
            ".env",
            "console",
            "com",
            "com10",
            "com1x",
            "null.txt",
            "notes~",
            "a~b",
            "longer-name~1.txt",
            "name~1.text",
            "é",
            "a b.c d",
        ] {
            assert_eq!(Windows.misread(path), None, "{path}");
        }
    }

    #[test]
    fn a_variable_of_windows_has_no_case() {
        let environment = HashMap::from([("Path".to_owned(), "p".to_owned()), ("TEMP".to_owned(), "t".to_owned())]);
        assert_eq!(Windows.variable(&environment, "PATH").map(String::as_str), Some("p"));
        assert_eq!(Windows.variable(&environment, "TEMP").map(String::as_str), Some("t"));
        assert_eq!(Windows.variable(&environment, "PAT"), None);
        assert_eq!((Exact.variable(&environment, "PATH"), Folded.variable(&environment, "PATH")), (None, None));
    }

    #[test]
    fn devices_and_shares_of_this_machine_are_never_granted() {
        for path in [
            r"\\.\PhysicalDrive0",
            r"\\?\Volume{1}\x",
            r"\\?\GLOBALROOT\Device\x",
            r"\\localhost\share\x",
            r"\\LOCALHOST\c",
            r"\\127.0.0.1\share",
            r"\\server\c$\Users",
            r"\\--1.ipv6-literal.net\share",
        ] {
            assert!(Windows.never_granted(path).is_some(), "{path}");
            assert_eq!((Exact.never_granted(path), Folded.never_granted(path)), (None, None), "{path}");
        }
        for path in [r"C:\Users\A", r"\\server\share\x", r"C:\", r"D:\a$"] {
            assert_eq!(Windows.never_granted(path), None, "{path}");
        }
    }

    #[test]
    fn the_second_root_of_macos_is_the_first() {
        for (path, plain) in [
            ("/System/Volumes/Data", "/"),
            ("/System/Volumes/Data/Users/a", "/Users/a"),
            ("/System/Volumes/Database/x", "/System/Volumes/Database/x"),
            ("/private/tmp", "/private/tmp"),
        ] {
            assert_eq!(Folded.without_second_root(path.into()), Path::new(plain));
            assert_eq!(Exact.without_second_root(path.into()), Path::new(path));
        }
    }

    #[test]
    fn a_prefix_that_nobody_writes_is_dropped_where_nothing_else_changes() {
        assert_eq!(without_prefix(r"\\?\C:\Users\A b\x").as_deref(), Some(r"C:\Users\A b\x"));
        assert_eq!(without_prefix(r"\\?\UNC\server\share\x").as_deref(), Some(r"\\server\share\x"));
        assert_eq!(without_prefix(r"\\?\C:\").as_deref(), Some(r"C:\"));
        assert_eq!(without_prefix(r"\\?\C:\PROGRA~1").as_deref(), Some(r"C:\PROGRA~1"));
        let long = format!(r"\\?\C:\{}", "a".repeat(MAX_PLAIN_PATH));
        for path in
            [r"C:\x", "/x", r"\\?\C:\x.", r"\\?\C:\nul\x", r"\\?\C:\a/b", r"\\?\C:\a\..\b", r"\\?\Volume{1}\x", &long]
        {
            assert_eq!(without_prefix(path), None, "{path}");
        }
    }
}
