//! Confusable names: skeletons by Unicode Technical Standard 39, extended to case, word separators and invisible characters.
//! Names with a common skeleton are taken for one another by a reader, or by a server that accepts fewer characters, so that
//! an untrusted tool could be called instead of another.

use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

use crate::call::Flag;

/// Returns the skeletons of a name. Two names are confusable if they have one in common.
///
/// The standard's table distinguishes case, and some letters resemble a Latin one in one case only: `I` and `l`, `К` and
/// `K`, `к` and no letter. So there is a skeleton of the name as it is, one in lower case, and one with the letters beyond
/// ASCII in upper case.
pub(super) fn skeletons(name: &str) -> [String; 3] {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let upper = |c: char| if c.is_ascii() { c.to_string() } else { c.to_uppercase().to_string() };
    let upper: String = visible.chars().map(upper).collect();
    [visible.to_lowercase(), visible, upper].map(|name| fold(&fold(&name)))
}

/// Returns the skeleton of a name in lower case, with compatibility forms such as full-width letters and separators replaced.
fn fold(name: &str) -> String {
    skeleton(name).nfkc().flat_map(char::to_lowercase).map(separator).collect()
}

/// Replaces a separator between words with `_`.
fn separator(c: char) -> char {
    if matches!(c, '-' | '.' | ':' | '/') || c.is_whitespace() { '_' } else { c }
}

/// Returns `true` for control characters and characters without a glyph, except white space.
fn is_invisible(c: char) -> bool {
    c.is_control() || (Flag::unseen(None, c).is_some() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        let known = skeletons(other);
        skeletons(one).iter().any(|skeleton| known.contains(skeleton))
    }

    #[test]
    fn names_that_a_reader_takes_for_one_another_are_alike() {
        for other in [
            "FS_READ_FILE",
            "fs-read-file",
            "fs.read file",
            "fs_read_fi1e",
            "fs_read_fiIe",
            "fs_reаd_file",
            "fs_r\u{435}ad_file",
            "fs_read\u{200b}_file",
            "fs_read_file\u{202e}",
            "ｆｓ＿ｒｅａｄ＿ｆｉｌｅ",
            "fs_read_\u{fb01}le",
            "fs_rеad_filе\u{e0041}",
            "fs\u{fe0f}_read\u{3164}_file\u{fff0}",
            "fs\u{2028}read_file",
        ] {
            assert!(alike("fs_read_file", other), "{other:?}");
        }
        assert!(alike("caf\u{e9}", "cafe\u{301}"), "one letter in two forms");
        assert!(alike("modern", "modem"), "letters that resemble one together");
        assert!(alike("go", "g0") && alike("СОРУ", "copy") && alike("АЕΗ", "AEH"));
    }

    #[test]
    fn names_that_differ_to_the_eye_are_not() {
        for (one, other) in
            [("fs_read", "fs_reads"), ("fail", "fall"), ("a_1", "a_2"), ("tool_10", "tool_100"), ("读", "写")]
        {
            assert!(!alike(one, other), "{one} {other}");
        }
    }
}
