//! Paths as the calls of Windows take them: a long path needs a prefix, after which the system reads no name in it.

/// Minimum length of a path that needs the prefix: a folder must leave room for a 12-character name in it.
const MAX_PLAIN: usize = 248;
const PREFIX: &str = r"\\?\";
const SHARE_PREFIX: &str = r"\\?\UNC";
const DEVICE_PREFIX: &str = r"\\.\";

/// Returns an absolute path in the form in which Windows accepts any length. A path that is short enough, has a prefix
/// already or names a device stays as it is.
#[must_use]
pub fn long_form(path: &str) -> String {
    let is_plain = path.encode_utf16().count() < MAX_PLAIN;
    if is_plain || path.starts_with(PREFIX) || path.starts_with(DEVICE_PREFIX) {
        return path.to_owned();
    }
    match path.strip_prefix(r"\\") {
        Some(_) => format!("{SHARE_PREFIX}{}", &path[1..]),
        None => format!("{PREFIX}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_its_prefix_and_a_short_one_stays() {
        let long = "a".repeat(300);
        assert_eq!(long_form(&format!(r"C:\{long}")), format!(r"\\?\C:\{long}"));
        assert_eq!(long_form(&format!(r"\\server\share\{long}")), format!(r"\\?\UNC\server\share\{long}"));
        for path in
            [r"C:\x".to_owned(), r"\\server\share".to_owned(), format!(r"\\?\C:\{long}"), format!(r"\\.\{long}")]
        {
            assert_eq!(long_form(&path), path);
        }
        assert!(long_form(&format!(r"C:\{}", "é".repeat(244))).starts_with('C'), "characters count, not bytes");
    }
}
