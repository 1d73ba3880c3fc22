//! Splits a list of patterns at `;` or `,`, which regular expressions may also contain.

/// Returns the patterns of a list, trimmed. A `,` between the numbers of a repetition (`{2,3}`) or the
/// characters of a class (`[a,b]`) separates nothing, nor does anything after a backslash. A bracket that is not closed
/// before the next `;` is an ordinary character.
pub(crate) fn listed(list: &str) -> impl Iterator<Item = &str> {
    let mut items = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(c) = list[at..].chars().next() {
        let next = at + c.len_utf8();
        if matches!(c, ',' | ';') {
            items.push(&list[start..at]);
            start = next;
        }
        at = next + held(c, &list[next..]);
    }
    items.push(&list[start..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty())
}

/// Returns the number of bytes after `c` that belong to the same token.
fn held(c: char, rest: &str) -> usize {
    let inside = |close| rest.split(';').next().and_then(|rest| Some(rest.split_once(close)?.0));
    let count = |text: &str| text.bytes().all(|byte| byte == b',' || byte.is_ascii_digit());
    match c {
        '\\' => rest.chars().next().map_or(0, char::len_utf8),
        '{' => inside('}').filter(|text| count(text)).map_or(0, str::len),
        '[' => inside(']').map_or(0, str::len),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_inside_of_an_expression_separates_nothing() {
        for (list, wanted) in [
            ("a,b;c", &["a", "b", "c"][..]),
            (" hush-[0-9]+; unused ,", &["hush-[0-9]+", "unused"]),
            ("sk-[a-f,0-9]{8,16},b", &["sk-[a-f,0-9]{8,16}", "b"]),
            (r"a\,b\;c,\\,d", &[r"a\,b\;c", r"\\", "d"]),
            // Plain texts with brackets of their own.
            ("pass{a,b},[c,d;e]f", &["pass{a", "b}", "[c", "d", "e]f"]),
            ("", &[]),
        ] {
            assert_eq!(listed(list).collect::<Vec<_>>(), wanted, "{list}");
        }
    }
}
