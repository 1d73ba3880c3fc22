//! Edits files by a patch in a format that models write well: text that names files and shows lines with their
//! surroundings, without numbers. All of it applies, or no file is changed.

mod hunk;
mod patch;

use std::fmt::Write;

use toolcrib_guest::files::Tree;
use toolcrib_guest::{Answer, Call, Opinion, Part, Payload, Result, tool, tools};

use patch::{BEGIN, Change};

tools!(apply_patch);

/// Edit files by a patch. Between `*** Begin Patch` and `*** End Patch` stand sections: `*** Update File: PATH` with hunks,
/// each with an optional line `@@ LINE` that names a line before the place, then lines that begin with a space (kept), `-`
/// (removed) or `+` (added), and three kept lines around a change where there are as many; `*** Add File: PATH` with lines that
/// begin with `+`; `*** Delete File: PATH`. An update may begin with `*** Move to: PATH`. Kept and removed lines must be there
/// exactly. All or nothing.
#[tool(
    text(field = "patch", lark_file = "src/patch.lark", description = "The patch, from `*** Begin Patch` to `*** End Patch`."),
    files = "write",
    timeout = "10s",
    interface(search_hint = "edit change files patch diff"),
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
    let told: Vec<String> = changes.iter().map(|change| told(change, true)).collect();
    Ok(Answer::text(told.join("\n")).show(Part::text(shown(&changes))))
}

fn apply(change: &Change, tree: &mut Tree) -> Result<()> {
    match change {
        Change::Add { path, lines } => tree.create(path, lines.iter().map(|line| format!("{line}\n")).collect()),
        Change::Delete { path } => {
            tree.read(path)?;
            tree.delete(path)
        }
        Change::Update { path, to, hunks } => {
            let edited = hunk::apply(path, tree.read(path)?, hunks)?;
            match to {
                None => tree.write(path, edited),
                Some(to) => {
                    tree.create(to, edited)?;
                    tree.delete(path)
                }
            }
        }
    }
}

/// A change in one line, as it was made or as it would be.
fn told(change: &Change, made: bool) -> String {
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

/// The lines that were changed, for people.
fn shown(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", told(change, true));
        for line in change.lines() {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// What the patch alone says: no file is looked at.
fn preview(call: &Call) -> Result<String> {
    let changes = patch::parse(call.text()?)?;
    Ok(changes.iter().map(|change| told(change, false)).collect::<Vec<_>>().join("\n"))
}

/// A text without a name is ours where it begins as a patch, and no other text is, whatever it is called.
fn route(call: &Call) -> Opinion {
    match &call.payload {
        Payload::Object(_) => Opinion::NoOpinion,
        Payload::Text(text) if !text.trim_start().starts_with(BEGIN) => Opinion::Rejects,
        Payload::Text(_) => Opinion::Claims,
    }
}

#[cfg(test)]
mod tests;
