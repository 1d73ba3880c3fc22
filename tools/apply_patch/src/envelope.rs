//! Patches between `*** Begin Patch` and `*** End Patch`: their parsing, and their changes of files.

pub(crate) mod hunks;

use toolcrib_guest::files::Tree;
use toolcrib_guest::{Error, Result};

use crate::{Changed, Kind, MAX_FILES};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "End of File";

/// Change of one file.
#[derive(Debug, PartialEq)]
pub(crate) enum Change<'a> {
    Add { path: &'a str, lines: Vec<&'a str> },
    Delete { path: &'a str },
    Update { path: &'a str, to: Option<&'a str>, hunks: Vec<Hunk<'a>> },
}

/// Changed lines of a file, with their context.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Hunk<'a> {
    /// Lines before the hunk, each to be found after the previous one.
    pub(crate) after: Vec<&'a str>,
    pub(crate) lines: Vec<Line<'a>>,
    /// `true` if the hunk ends at the end of the file.
    pub(crate) at_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line<'a> {
    Kept(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl Change<'_> {
    /// Makes the change in the tree.
    pub(crate) fn apply(&self, tree: &mut Tree) -> Result<()> {
        match self {
            Change::Add { path, lines } => tree.create(path, lines.iter().map(|line| format!("{line}\n")).collect()),
            Change::Delete { path } => {
                tree.read(path)?;
                tree.delete(path)
            }
            Change::Update { path, to, hunks } => {
                let text = tree.read(path)?;
                let edited = hunks::apply(path, text, hunks)?;
                if to.is_none() && edited == text {
                    return Err(Error::conflict(format!("`{path}`: the update changes nothing")));
                }
                match to {
                    None => tree.write(path, edited),
                    Some(to) => tree.rename(path, to, edited),
                }
            }
        }
    }

    /// Returns the change without its lines.
    pub(crate) fn changed(&self) -> Changed {
        let (change, path, from) = match self {
            Change::Add { path, .. } => (Kind::Created, path, None),
            Change::Delete { path } => (Kind::Deleted, path, None),
            Change::Update { path, to: None, .. } => (Kind::Modified, path, None),
            Change::Update { path, to: Some(to), .. } => (Kind::Renamed, to, Some((*path).to_owned())),
        };
        let (added, removed) = self.count();
        Changed { path: (*path).to_owned(), change, from, added, removed, ignored: None }
    }

    /// Number of added and removed lines.
    fn count(&self) -> (usize, usize) {
        match self {
            Change::Add { lines, .. } => (lines.len(), 0),
            Change::Delete { .. } => (0, 0),
            Change::Update { hunks, .. } => {
                let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
                let of = |wanted: fn(&Line<'_>) -> bool| lines().filter(|line| wanted(line)).count();
                (of(|line| matches!(line, Line::Added(_))), of(|line| matches!(line, Line::Removed(_))))
            }
        }
    }

    /// Changed lines, each with its mark.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Change::Add { lines, .. } => lines.iter().map(|line| format!("+{line}")).collect(),
            Change::Delete { .. } => Vec::new(),
            Change::Update { hunks, .. } => {
                let marked = |line: &Line<'_>| match line {
                    Line::Kept(text) => format!(" {text}"),
                    Line::Removed(text) => format!("-{text}"),
                    Line::Added(text) => format!("+{text}"),
                };
                hunks.iter().flat_map(|hunk| hunk.lines.iter().map(marked)).collect()
            }
        }
    }
}

/// Returns `true` if a text begins as such a patch.
pub(crate) fn is_begun(text: &str) -> bool {
    text.trim_start().starts_with("*** ")
}

/// Parses a patch into its changes, in order.
pub(crate) fn parse(patch: &str) -> Result<Vec<Change<'_>>> {
    let mut lines = patch.trim().lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    if lines.next().is_none_or(|(_, line)| line.trim_end() != BEGIN) {
        return Err(Error::invalid(format!("a patch begins with `{BEGIN}`")));
    }
    let mut changes: Vec<Change<'_>> = Vec::new();
    let mut ended = false;
    // Empty lines whose meaning depends on the next line: between sections they mean nothing.
    let mut empty = 0;
    for (number, line) in lines {
        let wrong = |why: &str| Error::invalid(format!("line {number} of the patch: {why}"));
        if ended {
            return Err(wrong("text follows after `*** End Patch`"));
        }
        if line.trim_end() == END {
            ended = true;
        } else if line.is_empty() {
            empty += 1;
        } else if let Some(section) = line.strip_prefix("*** ") {
            if section.trim() == END_OF_FILE {
                (0..empty).try_for_each(|_| line_of("", changes.last_mut())).map_err(|why| wrong(&why))?;
            }
            empty = 0;
            section_of(section, &mut changes).map_err(|why| wrong(&why))?;
            if changes.len() > MAX_FILES {
                return Err(wrong(&format!("the patch is for more than {MAX_FILES} files")));
            }
        } else {
            let kept = if line.starts_with("@@") { 0 } else { empty };
            empty = 0;
            let lines = (0..kept).map(|_| "").chain([line]);
            lines.into_iter().try_for_each(|line| line_of(line, changes.last_mut())).map_err(|why| wrong(&why))?;
        }
    }
    if !ended {
        return Err(Error::invalid(format!("a patch ends with `{END}`")));
    }
    for change in &changes {
        whole(change)?;
    }
    match changes.is_empty() {
        true => Err(Error::invalid("the patch names no file")),
        false => Ok(changes),
    }
}

fn section_of<'a>(section: &'a str, changes: &mut Vec<Change<'a>>) -> Result<(), String> {
    let path = |word: &str| section.strip_prefix(word).map(str::trim).filter(|path| !path.is_empty());
    let change = if let Some(path) = path("Add File:") {
        Change::Add { path, lines: Vec::new() }
    } else if let Some(path) = path("Delete File:") {
        Change::Delete { path }
    } else if let Some(path) = path("Update File:") {
        Change::Update { path, to: None, hunks: Vec::new() }
    } else if let Some(path) = path("Move to:") {
        return match changes.last_mut() {
            Some(Change::Update { to: to @ None, hunks, .. }) if hunks.is_empty() => {
                *to = Some(path);
                Ok(())
            }
            _ => Err("`Move to` may occur once, in the line after `Update File`".to_owned()),
        };
    } else if section.trim() == END_OF_FILE {
        return match changes.last_mut() {
            Some(Change::Update { hunks, .. }) if hunks.last().is_some_and(|hunk| !hunk.lines.is_empty()) => {
                hunks.iter_mut().last().into_iter().for_each(|hunk| hunk.at_end = true);
                Ok(())
            }
            _ => Err("`End of File` must follow the lines of a hunk".to_owned()),
        };
    } else {
        return Err("a section is `Add File: PATH`, `Delete File: PATH` or `Update File: PATH`".to_owned());
    };
    changes.push(change);
    Ok(())
}

fn line_of<'a>(line: &'a str, change: Option<&mut Change<'a>>) -> Result<(), String> {
    match change {
        None => Err("a line that belongs to no file".to_owned()),
        Some(Change::Delete { .. }) => Err("a deleted file has no lines".to_owned()),
        Some(Change::Add { lines, .. }) => {
            // An empty line is taken as an added one.
            let added = if line.is_empty() { Some(line) } else { line.strip_prefix('+') };
            lines.push(added.ok_or("each line of a new file begins with `+`")?);
            Ok(())
        }
        Some(Change::Update { hunks, .. }) => {
            if let Some(after) = line.strip_prefix("@@") {
                // Lines after one another name places ever further in.
                if hunks.last().is_none_or(|hunk| !hunk.lines.is_empty()) {
                    hunks.push(Hunk::default());
                }
                hunks.iter_mut().last().into_iter().for_each(|hunk| hunk.after.extend(anchor(after)));
                return Ok(());
            }
            if hunks.is_empty() {
                hunks.push(Hunk::default());
            }
            let read = match (line.get(..1), line.get(1..)) {
                (Some(" "), Some(text)) => Line::Kept(text),
                (Some("-"), Some(text)) => Line::Removed(text),
                (Some("+"), Some(text)) => Line::Added(text),
                // An empty line is taken as an empty kept line.
                (None, _) => Line::Kept(""),
                _ => return Err("a line of a hunk begins with a space, `-` or `+`".to_owned()),
            };
            hunks.last_mut().map(|hunk| hunk.lines.push(read)).ok_or_else(|| "no hunk".to_owned())
        }
    }
}

/// Line that a header of a hunk names. Line numbers, as in a unified diff, name none.
fn anchor(header: &str) -> Option<&str> {
    let header = header.trim();
    let is_range = |word: &str| word.len() > 1 && word[1..].chars().all(|c| c.is_ascii_digit() || c == ',');
    let is_numbered =
        header.starts_with('-') && header.split(' ').take(2).all(|word| word.is_ascii() && is_range(word));
    let header = if is_numbered { "" } else { header.strip_suffix("@@").unwrap_or(header).trim() };
    Some(header).filter(|header| !header.is_empty())
}

/// Refuses a change that changes nothing.
fn whole(change: &Change<'_>) -> Result<()> {
    let Change::Update { path, to, hunks } = change else { return Ok(()) };
    if hunks.iter().any(|hunk| hunk.lines.is_empty()) {
        return Err(Error::invalid(format!("`{path}`: a hunk has no lines")));
    }
    match to.is_none() && change.count() == (0, 0) {
        true => Err(Error::invalid(format!("`{path}`: the update changes nothing"))),
        false => Ok(()),
    }
}
