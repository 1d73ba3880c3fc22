//! Application of hunks to a text: in their order, each at the first place after the previous hunk where all of its
//! kept and removed lines match exactly.

use toolcrib_guest::{Error, Result};

use crate::patch::{Hunk, Line};

/// Maximum characters of a line in a message.
const SHOWN: usize = 120;

/// Applies all hunks to a text; `path` is its name in messages.
pub(crate) fn apply(path: &str, text: &str, hunks: &[Hunk<'_>]) -> Result<String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = text.strip_suffix(end).unwrap_or(text).split(end).collect();
    let lines = if text.is_empty() { Vec::new() } else { lines };
    let mut edited: Vec<&str> = Vec::with_capacity(lines.len());
    let mut next = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let conflict = |why: String| Error::conflict(format!("`{path}`, hunk {}: {why}", index + 1));
        let from = match hunk.after {
            None => next,
            Some(after) => {
                let found = lines[next..].iter().position(|line| line.trim() == after);
                next + 1 + found.ok_or_else(|| conflict(absent(after, next)))?
            }
        };
        let old: Vec<&str> = hunk.lines.iter().filter_map(|line| old(*line)).collect();
        let at = match old.is_empty() {
            // A hunk that only adds lines belongs after the line that it names, otherwise at the end.
            true => hunk.after.map_or(lines.len(), |_| from),
            false if hunk.at_end => lines
                .len()
                .checked_sub(old.len())
                .filter(|at| *at >= from && lines[*at..] == old)
                .ok_or_else(|| conflict("the file does not end with its lines".to_owned()))?,
            false => find(&lines, &old, from).ok_or_else(|| conflict(missing(&lines, &old, from)))?,
        };
        edited.extend(&lines[next..at]);
        edited.extend(hunk.lines.iter().filter_map(|line| new(*line)));
        next = at + old.len();
    }
    edited.extend(&lines[next..]);
    let mut edited = edited.join(end);
    if !edited.is_empty() && (text.is_empty() || text.ends_with(end)) {
        edited.push_str(end);
    }
    Ok(edited)
}

fn old<'a>(line: Line<'a>) -> Option<&'a str> {
    match line {
        Line::Kept(text) | Line::Removed(text) => Some(text),
        Line::Added(_) => None,
    }
}

fn new<'a>(line: Line<'a>) -> Option<&'a str> {
    match line {
        Line::Kept(text) | Line::Added(text) => Some(text),
        Line::Removed(_) => None,
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
            Some(found) => format!("line {} is `{}`, not `{}`", at + fit + 1, cut(found), cut(old[fit])),
            None => format!("the file ends before `{}`", cut(old[fit])),
        },
    }
}

/// Error for a line that the file does not have after its first `lines` lines.
fn absent(line: &str, lines: usize) -> String {
    match lines {
        0 => format!("the file has no line `{}`", cut(line)),
        _ => format!("the file has no line `{}` after line {lines}", cut(line)),
    }
}

fn cut(line: &str) -> String {
    line.chars().take(SHOWN).collect()
}
