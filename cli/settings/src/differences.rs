//! Changes in a stage, for people: what becomes of each entry, and the lines that differ.

use std::fs::File;
use std::io::Read;

use serde_json::{Value, json};
use toolcrib::staging::{Change, ChangeKind, Conflict, EntryKind, Stage};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{Tone, counted, from_here, legible, one_line, paint, unified};

/// Maximum length of a file that is compared.
const MAX_COMPARED: u64 = 1 << 20;

/// Differences of one change.
pub struct Differences<'a> {
    change: &'a Change,
    content: Content,
}

/// Content of a change.
enum Content {
    /// A folder, or an entry that was moved as it is.
    None,
    Link(String),
    Texts(String, String),
    Binary,
    TooLarge,
    Unreadable(String),
}

impl<'a> Differences<'a> {
    /// Reads both sides of a change.
    pub fn of(stage: &Stage, change: &'a Change) -> Self {
        Self { change, content: content(stage, change) }
    }

    /// Describes changes with their differences.
    pub fn all_as_json(stage: &Stage, changes: &[Change]) -> Vec<Value> {
        let one = |change| {
            let differences = Differences::of(stage, change);
            let mut value = serde_json::to_value(change).unwrap_or_default();
            match &differences.content {
                Content::Texts(before, after) => value["diff"] = json!(unified(before, after)),
                Content::Link(target) => value["target"] = json!(target),
                Content::Binary => value["binary"] = json!(true),
                _ => {}
            }
            value
        };
        changes.iter().map(one).collect()
    }

    /// Formats the change, with colors on a terminal.
    pub fn text(&self, terminal: bool) -> String {
        let mut text = line(self.change, terminal);
        let mut add = |line: String| {
            text.push('\n');
            text.push_str(&line);
        };
        match &self.content {
            Content::None => {}
            Content::Link(target) => add(format!("  links to `{}`", one_line(target))),
            Content::Binary => add("  binary".to_owned()),
            Content::TooLarge => add(format!("  larger than {}: not compared", rounded_size(MAX_COMPARED))),
            Content::Unreadable(error) => add(format!("  cannot be read: {}", one_line(error))),
            Content::Texts(before, after) if before == after && self.change.kind == ChangeKind::Modified => {
                add("  the same content".to_owned());
            }
            Content::Texts(before, after) => {
                for line in unified(before, after).lines() {
                    let shown = legible(line);
                    add(match line.as_bytes().first() {
                        Some(b'+') => paint(Tone::Good, &shown, terminal).into_owned(),
                        Some(b'-') => paint(Tone::Bad, &shown, terminal).into_owned(),
                        Some(b'@') => paint(Tone::Quiet, &shown, terminal).into_owned(),
                        _ => shown.into_owned(),
                    });
                }
            }
        }
        text
    }
}

/// Formats a change as one line: its kind, its path, its sizes and what is against its commit.
pub fn line(change: &Change, terminal: bool) -> String {
    let (tone, kind) = match change.kind {
        ChangeKind::Added => (Tone::Good, "added"),
        ChangeKind::Modified => (Tone::Advice, "modified"),
        ChangeKind::Moved => (Tone::Advice, "moved"),
        ChangeKind::Removed => (Tone::Bad, "removed"),
    };
    let shown = |path: &std::path::Path| quoted(&from_here(path).display().to_string());
    let slash = if change.entry == EntryKind::Folder { "/" } else { "" };
    let mut line = format!("{} ", paint(tone, kind, terminal));
    if let Some(from) = &change.from {
        line += &format!("{}{slash} → ", shown(from));
    }
    line += &format!("{}{slash}", shown(&change.path));
    if change.entry == EntryKind::Link {
        line += ", a link";
    }
    if let Some(was) = change.was {
        line += match was {
            EntryKind::Link => ", which was a link",
            EntryKind::File => ", which was a file",
            _ => ", which was no file",
        };
    }
    match (change.before, change.after) {
        (Some(before), Some(after)) if before != after => {
            line += &format!(" ({} → {})", rounded_size(before), rounded_size(after));
        }
        (Some(size), None) | (None, Some(size)) => line += &format!(" ({})", rounded_size(size)),
        _ => {}
    }
    if change.other_names > 0 {
        line += &format!(
            "; the file has {}, which the commit searches in the granted folders; elsewhere they keep the old content",
            counted(change.other_names, "other name")
        );
    }
    if let Some(conflict) = change.conflict {
        line += &format!(" {}", paint(Tone::Bad, &format!("conflict: {}", explained(conflict)), terminal));
    }
    line
}

/// Counts changes by their kind: `2 modified, 1 added`.
pub fn counts(changes: &[Change]) -> String {
    let kinds = [
        (ChangeKind::Modified, "modified"),
        (ChangeKind::Added, "added"),
        (ChangeKind::Moved, "moved"),
        (ChangeKind::Removed, "removed"),
    ];
    let count = |kind| changes.iter().filter(|change| change.kind == kind).count();
    let counted = kinds.into_iter().map(|(kind, word)| (count(kind), word)).filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counted.map(|(count, word)| format!("{count} {word}")).collect();
    let conflicts = changes.iter().filter(|change| change.conflict.is_some()).count();
    if conflicts > 0 {
        parts.push(counted_conflicts(conflicts));
    }
    parts.join(", ")
}

fn counted_conflicts(conflicts: usize) -> String {
    format!("{} with others' changes", counted(conflicts, "conflict"))
}

/// Describes a conflict.
pub fn explained(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Changed => "others have changed it since",
        Conflict::Gone => "it, or its folder, is gone",
        Conflict::Occupied => "others have created it meanwhile",
        Conflict::NotEmpty => "others have put entries into the folder since",
    }
}

/// Returns a name as it is, or in quotes if it could be read as another name or as a part of the line.
fn quoted(name: &str) -> String {
    let is_plain = name == one_line(name) && !name.contains(['"', '\\', '→']) && !name.ends_with([')', ':']);
    if is_plain { name.to_owned() } else { one_line(&Value::from(name).to_string()) }
}

fn content(stage: &Stage, change: &Change) -> Content {
    if let Some(target) = stage.link(change) {
        return Content::Link(target);
    }
    if change.entry != EntryKind::File {
        return Content::None;
    }
    if change.before.max(change.after).is_some_and(|size| size > MAX_COMPARED) {
        return Content::TooLarge;
    }
    let read = |opened: std::io::Result<Option<File>>| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(file) = opened? {
            file.take(MAX_COMPARED + 1).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    let both = read(stage.before(change)).and_then(|before| Ok((before, read(stage.after(change))?)));
    let (before, after) = match both {
        Ok(both) => both,
        Err(error) => return Content::Unreadable(error.to_string()),
    };
    if before.len().max(after.len()) as u64 > MAX_COMPARED {
        return Content::TooLarge;
    }
    if change.kind == ChangeKind::Moved && before == after {
        return Content::None;
    }
    match (String::from_utf8(before), String::from_utf8(after)) {
        (Ok(before), Ok(after)) if !before.contains('\0') && !after.contains('\0') => Content::Texts(before, after),
        _ => Content::Binary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_read_as_another_is_quoted() {
        for (name, shown) in [
            ("a b.txt", "a b.txt"),
            ("a ", "\"a \""),
            ("b\nc", "\"b\\nc\""),
            ("x → y", "\"x → y\""),
            ("x (2 bytes)", "\"x (2 bytes)\""),
        ] {
            assert_eq!(quoted(name), shown);
        }
    }
}
