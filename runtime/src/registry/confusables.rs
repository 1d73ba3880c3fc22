//! What a name looks like to somebody who reads it, or to a server that takes fewer characters. Two names of one likeness
//! are taken for one another, and so a stranger's tool could be called in the place of another.

use crate::call::Flag;

/// Letters of other scripts that look like a Latin one.
const LIKE_LATIN: [(&str, char); 25] = [
    ("аАΑɑα", 'a'),
    ("ВвΒβ", 'b'),
    ("сСϲ", 'c'),
    ("ԁ", 'd'),
    ("еЕΕε", 'e'),
    ("ɡ", 'g'),
    ("ҺһНнΗ", 'h'),
    ("іІΙιıӀ", 'i'),
    ("јЈ", 'j'),
    ("кКΚκ", 'k'),
    ("ӏℓ", 'l'),
    ("мМΜ", 'm'),
    ("Νη", 'n'),
    ("оОΟοσ", 'o'),
    ("рРΡρ", 'p'),
    ("ԛ", 'q'),
    ("г", 'r'),
    ("ѕЅ", 's'),
    ("тТΤτ", 't'),
    ("υս", 'u'),
    ("νѵ", 'v'),
    ("ԝѡω", 'w'),
    ("хХΧχ", 'x'),
    ("уУΥγ", 'y'),
    ("Ζ", 'z'),
];

/// What a name looks like, in two ways of which each makes two names alike: whatever the case of its letters, and with
/// digits taken for the letters that they resemble.
pub(super) fn of(name: &str) -> [String; 2] {
    let seen: String = name.chars().filter(|c| !is_invisible(*c)).map(latin).collect();
    // Of whatever else there is, the one form that names on the network have too: compatibility forms are one.
    let folded = if seen.is_ascii() { seen.to_ascii_lowercase() } else { idna::domain_to_unicode(&seen).0 };
    let resembling: String = seen.chars().map(resembled).collect();
    [joined(&folded), joined(&resembling.to_lowercase())]
}

/// With one character between the words of a name.
fn joined(name: &str) -> String {
    name.chars().map(|c| if matches!(c, '-' | '.' | ':' | '/') || c.is_whitespace() { '_' } else { c }).collect()
}

fn latin(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    LIKE_LATIN.iter().find(|(like, _)| like.contains(c)).map_or(c, |(_, latin)| *latin)
}

fn resembled(c: char) -> char {
    match c {
        'I' | '1' | '|' => 'l',
        '0' => 'o',
        other => other,
    }
}

/// Characters that leave no mark: controls, and what an eye does not see in an answer either. A break of a line is a
/// space like another.
fn is_invisible(c: char) -> bool {
    c.is_control() || (Flag::unseen(None, c).is_some() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        std::iter::zip(of(one), of(other)).any(|(one, other)| one == other)
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
