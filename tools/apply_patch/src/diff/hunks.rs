//! Application of the hunks of one file to a text. Knows no files.
//!
//! Every context and removed line must match, except for its line end. A hunk may have moved as a whole, by at most `fuzz`
//! lines from the place that follows from its line number and the movement of the previous hunks; the nearest place is used,
//! the earlier one of two. A hunk without a line number must fit at one place only.

use diffy::{Hunk, Line, Patch};
use toolcrib_guest::lines;

use super::completion::Place;
use crate::shown;

/// Maximum places that are named for a hunk that fits at several.
const MAX_NAMED: usize = 5;

/// Applies all hunks to a text; `places` are those that their headers stated.
pub(crate) fn apply(text: &str, patch: &Patch<'_, str>, places: &[Place], fuzz: usize) -> Result<String, String> {
    // A patch that shows the mark of the file is about it.
    let shows_mark = patch
        .hunks()
        .first()
        .is_some_and(|hunk| old_lines(hunk).first().is_some_and(|line| !lines::split_mark(line).0.is_empty()));
    let (mark, lines) = match shows_mark {
        true => ("", text.split_inclusive('\n').collect()),
        false => lines::split(text),
    };
    let mut edited = mark.to_owned();
    // The first line that no hunk has used yet, and the movement of the last hunk.
    let (mut next, mut moved) = (0, 0_isize);
    for (index, hunk) in patch.hunks().iter().enumerate() {
        let old = old_lines(hunk);
        let problem = |why: String| format!("hunk {} {why}", index + 1);
        let found = match places.get(index) {
            Some(Place::Line(stated)) => {
                let stated = if old.is_empty() { *stated } else { stated.saturating_sub(1) };
                let found = near(&lines, &old, stated.saturating_add_signed(moved).max(next), next, fuzz);
                let found = found.map_err(problem)?;
                moved = found as isize - stated as isize;
                found
            }
            Some(Place::Unnumbered(line)) => anywhere(&lines, &old, next, line.as_deref()).map_err(problem)?,
            None => return Err(problem("has no header".to_owned())),
        };
        edited.extend(lines[next..found].iter().copied());
        write(&mut edited, hunk, &lines, found, mark);
        next = found + old.len();
        if next < lines.len() && edited.len() > mark.len() && !edited.ends_with('\n') {
            return Err(problem(format!(
                "marks its last line as the end of the file, which goes on at line {}",
                next + 1
            )));
        }
    }
    edited.extend(lines[next..].iter().copied());
    Ok(edited)
}

fn old_lines<'a>(hunk: &Hunk<'a, str>) -> Vec<&'a str> {
    let kept = |line: &Line<'a, str>| match line {
        Line::Context(line) | Line::Delete(line) => Some(*line),
        Line::Insert(_) => None,
    };
    hunk.lines().iter().filter_map(kept).collect()
}

/// Finds the place nearest to `guess`, not before `least`, that has the old lines.
fn near(lines: &[&str], old: &[&str], guess: usize, least: usize, fuzz: usize) -> Result<usize, String> {
    // Only its own number states the place of a hunk without old lines.
    let fuzz = if old.is_empty() { 0 } else { fuzz };
    let places = (0..=fuzz).flat_map(|away| [guess.checked_sub(away), guess.checked_add(away)]).flatten();
    places.into_iter().find(|at| *at >= least && fits(lines, old, *at)).ok_or_else(|| {
        let near = mismatch(lines, old, guess);
        format!("does not apply at line {}, nor within {fuzz} lines of it{near}", guess + 1)
    })
}

/// Finds the place of a hunk without a line number, from the line `least` on: the first one at or after the line that its
/// header names, otherwise the only one.
fn anywhere(lines: &[&str], old: &[&str], least: usize, named: Option<&str>) -> Result<usize, String> {
    let from = match named {
        None => least,
        Some(name) => {
            let is_named = |line: &&str| line.trim() == name;
            let found = lines[least..].iter().position(is_named);
            let found = found.or_else(|| lines[least..].iter().position(|line| line.contains(name)));
            least + found.ok_or_else(|| format!("does not apply: the file has no line `{}` for it", shown(name)))?
        }
    };
    if old.is_empty() {
        return match named {
            Some(_) => Ok(from + 1),
            None if lines.is_empty() => Ok(0),
            None => Err("only adds lines, and neither a number nor a line before them states where".to_owned()),
        };
    }
    let places: Vec<usize> = (from..lines.len()).filter(|at| fits(lines, old, *at)).take(MAX_NAMED).collect();
    match places.as_slice() {
        [] => {
            let after = if from > 0 { format!(" after line {from}") } else { String::new() };
            Err(format!("does not apply: no place in the file{after} has its lines{}", closest(lines, old, from)))
        }
        [at] => Ok(*at),
        [at, ..] if named.is_some() => Ok(*at),
        several => {
            let several: Vec<_> = several.iter().map(|at| (at + 1).to_string()).collect();
            Err(format!("fits at the lines {}; state the line in its header", several.join(", ")))
        }
    }
}

fn fits(lines: &[&str], old: &[&str], at: usize) -> bool {
    let Some(found) = at.checked_add(old.len()).and_then(|end| lines.get(at..end)) else { return false };
    found.iter().zip(old).all(|(found, old)| is_same(found, old))
}

/// Returns `true` if a line of the file is one of a patch. Only a line that is marked as one without a line break differs from
/// the same line with one.
fn is_same(found: &str, old: &str) -> bool {
    let is_marked = !old.ends_with('\n');
    lines::content(found) == lines::content(old) && !(is_marked && found.ends_with('\n'))
}

/// Writes a hunk. Kept lines are those of the file. A new line ends like the line of the file that it replaces, or like the
/// one above it, unless the hunk itself is about line ends.
fn write(edited: &mut String, hunk: &Hunk<'_, str>, lines: &[&str], mut at: usize, mark: &str) {
    let is_exact = old_lines(hunk).iter().zip(&lines[at..]).all(|(old, found)| old == found);
    let has_returns = hunk.lines().iter().any(|line| {
        let (Line::Context(line) | Line::Delete(line) | Line::Insert(line)) = line;
        line.ends_with("\r\n")
    });
    for line in hunk.lines() {
        // The last line of a file may lack the break that it needs before another line.
        if !matches!(line, Line::Delete(_)) && edited.len() > mark.len() && !edited.ends_with('\n') {
            edited.push_str(lines::line_break_at(lines, 0));
        }
        match line {
            Line::Context(_) => {
                edited.push_str(lines[at]);
                at += 1;
            }
            Line::Delete(_) => at += 1,
            Line::Insert(new) => {
                let new = if edited.len() == mark.len() && !mark.is_empty() { lines::split_mark(new).1 } else { new };
                if is_exact && has_returns || !new.ends_with('\n') {
                    edited.push_str(new);
                } else {
                    edited.push_str(lines::content(new));
                    edited.push_str(lines::line_break_at(lines, at));
                }
            }
        }
    }
}

/// Describes the first line that differs from the hunk.
fn mismatch(lines: &[&str], old: &[&str], at: usize) -> String {
    for (offset, expected) in old.iter().enumerate() {
        let number = at + offset + 1;
        match lines.get(at + offset) {
            None => return format!(": there is no line {number}"),
            Some(line) if is_same(line, expected) => {}
            Some(line) if lines::content(line) == lines::content(expected) => {
                return format!(": line {number} has a line break, and the patch has it without one");
            }
            Some(line) => {
                return format!(": line {number} is `{}`, not `{}`", shown(line), shown(expected));
            }
        }
    }
    String::new()
}

/// Describes the place with the most lines of the hunk in a row from its first.
fn closest(lines: &[&str], old: &[&str], from: usize) -> String {
    let alike = |at: usize| old.iter().zip(&lines[at..]).take_while(|(old, found)| is_same(found, old)).count();
    let places = (from..lines.len()).map(|at| (alike(at), at)).filter(|(alike, _)| *alike > 0);
    match places.rev().max_by_key(|(alike, _)| *alike) {
        Some((_, at)) => mismatch(lines, old, at),
        None => format!(": there is no line `{}`", old.first().map(|line| shown(line)).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::completion::complete;

    const PATCH: &str = "--- a\n+++ b\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n";

    fn apply_to(text: &str, patch: &str, fuzz: usize) -> Result<String, String> {
        let done = complete(patch).map_err(|error| error.to_string())?;
        apply(text, &Patch::from_str(&done.text).expect("a patch"), &done.places, fuzz)
    }

    /// Applies a hunk with this header.
    fn hunk(text: &str, hunk: &str) -> Result<String, String> {
        apply_to(text, &format!("--- a\n+++ b\n{hunk}"), 0)
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
        assert_eq!(hunk("a\nb\n", "@@ -1,0 +2 @@\n+x\n").as_deref(), Ok("a\nx\nb\n"));
        assert!(hunk("", "@@ -1,0 +2 @@\n+x\n").is_err());
        assert!(hunk("a\n", "@@\n+x\n").expect_err("no place").contains("only adds lines"));
    }

    #[test]
    fn a_hunk_without_a_number_applies_at_its_only_place() {
        assert_eq!(hunk("a\nb\n", "@@\n-a\n+A\n b\n").as_deref(), Ok("A\nb\n"));
        assert_eq!(
            hunk("a\nb\na\n", "@@\n-a\n+A\n").expect_err("two"),
            "hunk 1 fits at the lines 1, 3; state the line in its header"
        );
        let named = "def f():\n    pass\ndef g():\n    pass\n";
        assert_eq!(
            hunk(named, "@@ def g(): @@\n-    pass\n+    return\n").as_deref(),
            Ok("def f():\n    pass\ndef g():\n    return\n")
        );
        assert!(hunk(named, "@@ def h():\n-    pass\n").expect_err("no h").contains("no line `def h():`"));
        assert!(hunk("a\nb\n", "@@\n a\n-c\n").expect_err("no c").ends_with("line 2 is `b`, not `c`"));
    }

    #[test]
    fn lines_keep_their_ends_and_new_ones_get_those_above() {
        assert_eq!(hunk("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n").as_deref(), Ok("a\r\nx\r\nb\r\n"));
        assert_eq!(hunk("a\nb\r\nc\n", "@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n").as_deref(), Ok("a\nb\r\nC\n"));
        assert_eq!(hunk("a\r\n", "@@ -1 +1 @@\n-a\r\n+a\n").as_deref(), Ok("a\n"), "a patch about line ends");
        assert_eq!(hunk("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c").as_deref(), Ok("a\nb\nc\n"));
        let unended = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(hunk("a", unended).as_deref(), Ok("b"));
        assert!(hunk("a\n", unended).expect_err("a break").contains("has a line break"));
        let early = "@@ -1 +1 @@\n-a\n+X\n\\ No newline at end of file\n";
        assert!(hunk("a\nb\n", early).expect_err("goes on").contains("goes on at line 2"));
        assert_eq!(hunk("a\n", early).as_deref(), Ok("X"));
    }

    #[test]
    fn a_patch_that_shows_the_mark_of_the_file_changes_it() {
        assert_eq!(hunk("\u{feff}a\n", "@@ -1 +1 @@\n-\u{feff}a\n+a\n").as_deref(), Ok("a\n"));
        assert_eq!(hunk("a\n", "@@ -1 +1 @@\n-a\n+\u{feff}a\n").as_deref(), Ok("\u{feff}a\n"));
        assert!(hunk("a\n", "@@ -1 +1 @@\n-\u{feff}a\n+b\n").is_err(), "it has none");
    }

    #[test]
    fn the_mark_at_the_beginning_stays() {
        assert_eq!(hunk("\u{feff}a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n").as_deref(), Ok("\u{feff}A\nb\n"));
        assert_eq!(hunk("\u{feff}a\n", "@@ -1 +1 @@\n-\u{feff}a\n+\u{feff}A\n").as_deref(), Ok("\u{feff}A\n"));
    }
}
