//! Application of the hunks of one file to a text. Knows no files.
//!
//! Every context and removed line must match exactly. A hunk may have moved as a whole, by at most `fuzz` lines from
//! the place that follows from its line number and the movement of the previous hunks; the nearest place is used, the
//! earlier one of two.

use diffy::{Hunk, Line, Patch};

pub(crate) fn apply(text: &str, patch: &Patch<'_, str>, fuzz: usize) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut edited = String::new();
    // The first line that no hunk has used yet, and the movement of the last hunk.
    let (mut next, mut moved) = (0, 0_isize);
    for (index, hunk) in patch.hunks().iter().enumerate() {
        let old = old_lines(hunk);
        let stated = first_line(hunk);
        let guess = stated.saturating_add_signed(moved).max(next);
        // Only its own number states the place of a hunk without old lines.
        let fuzz = if old.is_empty() { 0 } else { fuzz };
        let found = find(&lines, &old, guess, next, fuzz).ok_or_else(|| {
            let number = index + 1;
            let near = mismatch(&lines, &old, guess);
            format!("hunk {number} does not apply at line {}, nor within {fuzz} lines of it{near}", guess + 1)
        })?;
        edited.extend(lines[next..found].iter().copied());
        edited.extend(new_lines(hunk));
        next = found + old.len();
        moved = found as isize - stated as isize;
    }
    edited.extend(lines[next..].iter().copied());
    Ok(edited)
}

/// First line of a hunk by its header, from 0. A hunk that only adds lines names the line before it.
fn first_line(hunk: &Hunk<'_, str>) -> usize {
    let old = hunk.old_range();
    if old.is_empty() { old.start() } else { old.start().saturating_sub(1) }
}

fn old_lines<'a>(hunk: &Hunk<'a, str>) -> Vec<&'a str> {
    let kept = |line: &Line<'a, str>| match line {
        Line::Context(line) | Line::Delete(line) => Some(*line),
        Line::Insert(_) => None,
    };
    hunk.lines().iter().filter_map(kept).collect()
}

fn new_lines<'a>(hunk: &Hunk<'a, str>) -> impl Iterator<Item = &'a str> {
    hunk.lines().iter().filter_map(|line| match line {
        Line::Context(line) | Line::Insert(line) => Some(*line),
        Line::Delete(_) => None,
    })
}

/// Finds the place nearest to `guess`, not before `least`, that holds the old lines.
fn find(lines: &[&str], old: &[&str], guess: usize, least: usize, fuzz: usize) -> Option<usize> {
    let fits = |at: &usize| *at >= least && at.checked_add(old.len()).and_then(|end| lines.get(*at..end)) == Some(old);
    (0..=fuzz).flat_map(|away| [guess.checked_sub(away), guess.checked_add(away)]).flatten().find(fits)
}

/// Describes the first line that differs from the hunk.
fn mismatch(lines: &[&str], old: &[&str], at: usize) -> String {
    for (offset, expected) in old.iter().enumerate() {
        let number = at + offset + 1;
        match lines.get(at + offset) {
            None => return format!(": there is no line {number}"),
            Some(line) if line == expected => {}
            Some(line) => {
                return format!(": line {number} is `{}`, not `{}`", shown(line), shown(expected));
            }
        }
    }
    String::new()
}

/// Quotes a line for a message, with its line break escaped if that may be the difference.
fn shown(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line).replace('\r', "\\r");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "--- a\n+++ b\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n";

    fn apply_to(text: &str, patch: &str, fuzz: usize) -> Result<String, String> {
        apply(text, &Patch::from_str(patch).expect("a patch"), fuzz)
    }

    #[test]
    fn a_hunk_applies_where_it_says() {
        assert_eq!(apply_to("a\nb\nc\nd\n", PATCH, 0).as_deref(), Ok("a\nb\nC\nd\n"));
    }

    #[test]
    fn a_moved_hunk_applies_within_the_fuzz_only() {
        let moved = "0\n1\na\nb\nc\nd\n";
        assert_eq!(apply_to(moved, PATCH, 2).as_deref(), Ok("0\n1\na\nb\nC\nd\n"));
        assert!(apply_to(moved, PATCH, 1).is_err());
    }

    #[test]
    fn the_nearest_place_wins() {
        let twice = "b\nc\nd\nb\nc\nd\n";
        assert_eq!(apply_to(twice, PATCH, 9).as_deref(), Ok("b\nC\nd\nb\nc\nd\n"));
    }

    #[test]
    fn a_different_line_is_shown() {
        let problem = apply_to("a\nb\nX\nd\n", PATCH, 3).expect_err("no place");
        assert_eq!(problem, "hunk 1 does not apply at line 2, nor within 3 lines of it: line 3 is `X`, not `c`");
    }

    #[test]
    fn hunks_never_overlap() {
        let patch = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+c\n";
        assert_eq!(apply_to("a\na\n", patch, 5).as_deref(), Ok("b\nc\n"));
        assert!(apply_to("a\nx\n", patch, 5).is_err());
    }

    #[test]
    fn a_hunk_that_only_adds_goes_after_its_line() {
        let patch = "--- a\n+++ b\n@@ -1,0 +2 @@\n+x\n";
        assert_eq!(apply_to("a\nb\n", patch, 0).as_deref(), Ok("a\nx\nb\n"));
        assert!(apply_to("", patch, 9).is_err());
    }
}
