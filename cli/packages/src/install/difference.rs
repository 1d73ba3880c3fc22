//! Differences between texts, line by line: descriptions and schemas of tools.

/// Maximum number of compared lines in each text; of longer texts all lines differ.
const MAX_COMPARED: usize = 600;
/// Maximum number of lines per difference.
const MAX_LINES: usize = 200;
/// Number of equal lines that are shown around a difference.
const CONTEXT: usize = 2;

/// Line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// Formats the difference of two texts: lines that begin with `-` or `+`, and with a space for those around them.
pub fn lines(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let all = match before.len().max(after.len()) <= MAX_COMPARED {
        true => compared(&before, &after),
        false => before.into_iter().map(Line::Removed).chain(after.into_iter().map(Line::Added)).collect(),
    };
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        all.iter().skip(from).take(at - from + CONTEXT + 1).any(|line| !matches!(line, Line::Same(_)))
    };
    let mut shown = Vec::new();
    let mut hidden = false;
    for (at, line) in all.iter().enumerate() {
        if !is_near(at) {
            hidden = true;
            continue;
        }
        if std::mem::take(&mut hidden) {
            shown.push("  …".to_owned());
        }
        shown.push(match line {
            Line::Same(text) => format!("  {text}"),
            Line::Removed(text) => format!("- {text}"),
            Line::Added(text) => format!("+ {text}"),
        });
    }
    if let Some(more @ 1..) = shown.len().checked_sub(MAX_LINES) {
        shown.truncate(MAX_LINES);
        shown.push(format!("… and {more} more lines"));
    }
    shown
}

/// Compares lines by their longest common subsequence.
fn compared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    // Length of the longest common subsequence of the rests from each pair of lines on.
    let width = after.len() + 1;
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for one in (0..before.len()).rev() {
        for other in (0..after.len()).rev() {
            common[one * width + other] = match before[one] == after[other] {
                true => common[(one + 1) * width + other + 1] + 1,
                false => common[(one + 1) * width + other].max(common[one * width + other + 1]),
            };
        }
    }
    let (mut one, mut other) = (0, 0);
    let mut lines = Vec::new();
    while one < before.len() || other < after.len() {
        let is_same = one < before.len() && other < after.len() && before[one] == after[other];
        let removes = other == after.len()
            || one < before.len() && common[(one + 1) * width + other] >= common[one * width + other + 1];
        if is_same {
            lines.push(Line::Same(before[one]));
            (one, other) = (one + 1, other + 1);
        } else if removes {
            lines.push(Line::Removed(before[one]));
            one += 1;
        } else {
            lines.push(Line::Added(after[other]));
            other += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_shown_with_the_lines_around_them() {
        let before = "a\nb\nc\nd\ne\nf\ng";
        let after = "a\nb\nc\nd\nE\nf\ng\nh";
        assert_eq!(lines(before, after), ["  …", "  c", "  d", "- e", "+ E", "  f", "  g", "+ h"]);
        assert!(lines(before, before).is_empty());
        assert_eq!(lines("", "new"), ["+ new"]);
        assert_eq!(lines("old", ""), ["- old"]);
    }

    #[test]
    fn long_texts_are_compared_and_shown_within_bounds() {
        let long = "x\n".repeat(MAX_COMPARED + 1);
        let lines = lines(&long, "y");
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines.last().unwrap(), "… and 402 more lines");
    }
}
