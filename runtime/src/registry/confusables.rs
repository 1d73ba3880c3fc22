//! Confusable names: skeletons by Unicode Technical Standard 39, extended to case, word separators and invisible characters.
//! Names with a common skeleton are taken for one another by a reader, or by a server that accepts fewer characters, so that
//! an untrusted tool could be called instead of another.

use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

use crate::call::Flag;

/// Returns the skeletons of a name. Two names are confusable if they have one in common.
///
/// The standard's table distinguishes case, and some letters resemble a Latin one in one case only: `I` and `l`, `К` and
/// `K`, `к` and no letter. So there is a skeleton of the name as it is, one in lower case, and one with the letters beyond
/// ASCII in upper case. Equal ones are left out.
pub(super) fn skeletons(name: &str) -> Vec<String> {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let mut forms = vec![visible.to_lowercase()];
    if !visible.is_ascii() {
        let upper = |c: char| if c.is_ascii() { c.to_string() } else { c.to_uppercase().to_string() };
        forms.push(visible.chars().map(upper).collect());
    }
    if visible != forms[0] {
        forms.push(visible);
    }
    forms.iter().map(|form| fold(form)).collect()
}

/// Returns the skeleton of a name in lower case, with compatibility forms such as full-width letters and separators replaced,
/// until nothing is left to replace.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for c in name.chars() {
        match fold_ascii(c) {
            Some(text) => folded.push_str(text),
            None => return fold_once(&fold_once(name)),
        }
    }
    folded
}

/// Returns what an ASCII character becomes in each name; `None` if it becomes characters beyond ASCII, which could
/// combine with their neighbors.
fn fold_ascii(c: char) -> Option<&'static str> {
    static FOLDED: [OnceLock<Option<String>>; 128] = [const { OnceLock::new() }; 128];
    let folded = FOLDED.get(c as usize)?.get_or_init(|| {
        let once = fold_once(c.encode_utf8(&mut [0; 4]));
        let twice = fold_once(&once);
        (once.is_ascii() && twice.is_ascii()).then_some(twice)
    });
    folded.as_deref()
}

fn fold_once(name: &str) -> String {
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
    fn characters_of_ascii_are_folded_one_by_one_as_names_are() {
        let ascii = || (0..128u8).map(char::from);
        for (one, other) in ascii().flat_map(|one| ascii().map(move |other| (one, other))) {
            let name = String::from_iter([one, other, 'm', one]);
            assert_eq!(fold(&name), fold_once(&fold_once(&name)), "{name:?}");
        }
        assert!(ascii().filter(|c| c.is_alphanumeric()).all(|c| fold_ascii(c).is_some()));
        assert_eq!(fold("e\u{301}"), fold_once(&fold_once("e\u{301}")), "a mark combines with the letter before it");
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
