//! Tool `apply_patch`: edits files by a patch in a format that models write reliably: it names files and shows lines
//! with their context, without line numbers. Either the whole patch applies, or no file is changed.

mod hunk;
mod patch;

use std::fmt::Write;

use toolcrib_guest::files::Tree;
use toolcrib_guest::{Answer, Call, Error, Opinion, Part, Payload, Result, tool, tools};

use patch::{BEGIN, Change};

tools!(apply_patch);

/// Maximum changes that are listed for the model.
const MAX_LISTED: usize = 100;

/// Edit up to 1000 files by a patch, completely or not at all. Between `*** Begin Patch` and `*** End Patch`:
/// `*** Update File: PATH`, if renamed `*** Move to: PATH`, then hunks of optional lines `@@ LINE` that name lines above,
/// and lines with a space (kept), `-` (removed) or `+` (added), with three kept lines around a change;
/// `*** Add File: PATH` and lines with `+`; `*** Delete File: PATH`. Kept and removed lines match exactly.
#[tool(
    text(field = "patch", lark_file = "src/patch.lark", description = "The patch"),
    files = "write",
    timeout = "30s",
    interface(search_hint = "edit change files patch diff"),
    validate = validate,
    preview = preview,
    route = route
)]
fn apply_patch(patch: &str) -> Result<Answer> {
    let changes = patch::parse(patch)?;
    let mut tree = Tree::default();
    for change in &changes {
        apply(change, &mut tree)?;
    }
    tree.commit()?;
    Ok(Answer::text(listed(&changes, true)).show(Part::text(changed_lines(&changes))))
}

fn apply(change: &Change, tree: &mut Tree) -> Result<()> {
    match change {
        Change::Add { path, lines } => tree.create(path, lines.iter().map(|line| format!("{line}\n")).collect()),
        Change::Delete { path } => {
            tree.read(path)?;
            tree.delete(path)
        }
        Change::Update { path, to, hunks } => {
            let text = tree.read(path)?;
            let edited = hunk::apply(path, text, hunks)?;
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

/// Lists changes, one line each, and the number of those that are not listed.
fn listed(changes: &[Change], made: bool) -> String {
    let mut lines: Vec<String> = changes.iter().take(MAX_LISTED).map(|change| describe(change, made)).collect();
    if let more @ 1.. = changes.len().saturating_sub(MAX_LISTED) {
        lines.push(format!("and {more} more files"));
    }
    lines.join("\n")
}

/// Describes a change in one line, in the past tense if it was made.
fn describe(change: &Change, made: bool) -> String {
    let (added, removed) = change.count();
    match change {
        Change::Add { path, .. } => format!("{} {path} (+{added})", if made { "added" } else { "add" }),
        Change::Delete { path } => format!("{} {path}", if made { "deleted" } else { "delete" }),
        Change::Update { path, to, .. } => {
            let moved = to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
            format!("{} {path}{moved} (+{added} -{removed})", if made { "edited" } else { "edit" })
        }
    }
}

/// Lists the changed lines, for people.
fn changed_lines(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", describe(change, true));
        for line in change.lines() {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// Refuses a text that is no patch before anybody is asked about the call.
fn validate(call: &Call) -> Result<()> {
    patch::parse(call.text()?).map(|_| ())
}

/// Describes the patch from its text alone, without reading files.
fn preview(call: &Call) -> Result<String> {
    let changes = patch::parse(call.text()?)?;
    Ok(listed(&changes, false))
}

/// Claims a text without a tool name if it begins as a patch. A text with this tool's name is not rejected here, since
/// `validate` states the reason.
fn route(call: &Call) -> Opinion {
    match &call.payload {
        Payload::Text(text) if text.trim_start().starts_with(BEGIN) => Opinion::Claims,
        _ => Opinion::NoOpinion,
    }
}

#[cfg(test)]
mod tests;
