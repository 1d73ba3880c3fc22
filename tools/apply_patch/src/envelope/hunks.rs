//! Application of hunks to a text: in their order, each at the first place after the previous hunk where all of its
//! kept and removed lines match, except for their ends.

use toolcrib_guest::{Error, Result, lines};

use super::{Hunk, Line};
use crate::shown;

/// Applies all hunks to a text; `path` is its name in messages.
pub(crate) fn apply(path: &str, text: &str, hunks: &[Hunk<'_>]) -> Result<String> {
    let (mark, whole) = lines::split(text);
    let lines: Vec<&str> = whole.iter().map(|line| lines::content(line)).collect();
    let mut edited = mark.to_owned();
    let mut next = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let conflict = |why: String| Error::conflict(format!("`{path}`, hunk {}: {why}", index + 1));
        let mut from = next;
        for after in &hunk.after {
            let found = lines[from..].iter().position(|line| line.trim() == *after);
            from += 1 + found.ok_or_else(|| conflict(absent(after, from)))?;
        }
        let old: Vec<&str> = hunk.lines.iter().filter_map(|line| old(*line)).collect();
        let at = match old.is_empty() {
            // A hunk that only adds lines belongs after the line that it names, otherwise at the end.
            true if hunk.after.is_empty() => lines.len(),
            true => from,
            false if hunk.at_end => lines
                .len()
                .checked_sub(old.len())
                .filter(|at| *at >= from && lines[*at..] == old)
                .ok_or_else(|| conflict("the file does not end with its lines".to_owned()))?,
            false => find(&lines, &old, from).ok_or_else(|| conflict(missing(&lines, &old, from)))?,
        };
        edited.extend(whole[next..at].iter().copied());
        next = write(&mut edited, hunk, &whole, at);
    }
    edited.extend(whole[next..].iter().copied());
    // A file without a line break at its end gets none.
    if !text.is_empty() && !text.ends_with('\n') && edited.ends_with('\n') {
        edited.truncate(lines::content(&edited).len());
    }
    Ok(edited)
}

/// Writes a hunk at a line, and returns the line after it. Kept lines are those of the file.
fn write(edited: &mut String, hunk: &Hunk<'_>, whole: &[&str], mut at: usize) -> usize {
    for line in &hunk.lines {
        // The last line of a file may lack the break that it needs before another line.
        if !matches!(line, Line::Removed(_)) && at == whole.len() && !edited.is_empty() && !edited.ends_with('\n') {
            edited.push_str(lines::line_break_at(whole, at.saturating_sub(1)));
        }
        match line {
            Line::Kept(_) => {
                edited.push_str(whole[at]);
                at += 1;
            }
            Line::Removed(_) => at += 1,
            Line::Added(text) => {
                edited.push_str(text);
                edited.push_str(lines::line_break_at(whole, at));
            }
        }
    }
    at
}

fn old<'a>(line: Line<'a>) -> Option<&'a str> {
    match line {
        Line::Kept(text) | Line::Removed(text) => Some(text),
        Line::Added(_) => None,
    }
}

fn find(lines: &[&str], old: &[&str], from: usize) -> Option<usize> {
    let found = lines.get(from..)?.windows(old.len()).position(|window| window == old)?;
    Some(from + found)
}

/// Error for a hunk that matches nowhere: the nearest place, and the line there that differs.
fn missing(lines: &[&str], old: &[&str], from: usize) -> String {
    let alike = |at: &usize| old.iter().zip(&lines[*at..]).take_while(|(wanted, found)| wanted == found).count();
    // The earliest of the places with the longest match.
    let nearest = (from..lines.len()).map(|at| (alike(&at), at)).rev().max_by_key(|(fit, _)| *fit);
    match nearest.filter(|(fit, _)| *fit > 0) {
        None => absent(old[0], from),
        Some((fit, at)) => match lines.get(at + fit) {
            Some(found) => format!("line {} is `{}`, not `{}`", at + fit + 1, shown(found), shown(old[fit])),
            None => format!("the file ends before `{}`", shown(old[fit])),
        },
    }
}

/// Error for a line that the file does not have after its first `lines` lines.
fn absent(line: &str, lines: usize) -> String {
    match lines {
        0 => format!("the file has no line `{}`", shown(line)),
        _ => format!("the file has no line `{}` after line {lines}", shown(line)),
    }
}
