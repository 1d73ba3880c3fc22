//! Unified diffs: their files, and the changes of them.

mod completion;
mod hunks;

use diffy::patch_set::{FileMode, FileOperation, FilePatch, ParseOptions, PatchSet};
use diffy::{Line, Patch};
use toolcrib_guest::files::Tree;
use toolcrib_guest::{Result, error, lines};

use crate::{Changed, Kind, MAX_FILES};
use completion::{Completed, Place};

/// Applies a diff to the tree in memory.
pub(crate) fn apply(patch: &str, strip: Option<usize>, fuzz: usize, tree: &mut Tree) -> Result<Vec<Changed>> {
    let done = completion::complete(lines::split_mark(patch).1)?;
    let files = files(&done)?;
    files
        .iter()
        .map(|(patch, places)| apply_to(&stripped(patch.operation(), strip), patch, places, fuzz, tree))
        .collect()
}

/// Returns the changes of a diff by its text alone.
pub(crate) fn changes(patch: &str, strip: Option<usize>) -> Result<Vec<Changed>> {
    let done = completion::complete(lines::split_mark(patch).1)?;
    let changed = |(patch, _): &(FilePatch<'_, str>, _)| Ok(changed(patch, &stripped(patch.operation(), strip))?.0);
    files(&done)?.iter().map(changed).collect()
}

/// Returns the files of a diff, each with the places of its hunks.
fn files(done: &Completed) -> Result<Vec<(FilePatch<'_, str>, &[Place])>> {
    let mut places = done.places.as_slice();
    let mut files = Vec::new();
    for patch in parse(&done.text)? {
        let hunks = patch.patch().as_text().map_or(0, |patch| patch.hunks().len());
        let (of_file, rest) = places.split_at_checked(hunks).ok_or_else(|| error!("a hunk has no header"))?;
        places = rest;
        files.push((patch, of_file));
    }
    match places.len() {
        0 => Ok(files),
        left => Err(error!("{left} hunks of the patch belong to no file; each file begins with `---` and `+++`")),
    }
}

fn parse(patch: &str) -> Result<Vec<FilePatch<'_, str>>> {
    let has = |start: &str| patch.lines().any(|line| line.starts_with(start));
    let options = if has("diff --git ") { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
    if !["diff --git ", "--- ", "+++ "].into_iter().any(has) {
        return Err(error!(
            "the patch names no file; it begins with `*** Begin Patch`, or is a unified diff with `---`, `+++` and `@@` lines"
        ));
    }
    let patches: Vec<_> = PatchSet::parse(patch, options).take(MAX_FILES + 1).collect::<Result<_, _>>()?;
    match patches.len() {
        0 => Err(error!("the patch names no file; each file begins with `---` and `+++`")),
        1..=MAX_FILES => Ok(patches),
        _ => Err(error!("the patch is for more than {MAX_FILES} files")),
    }
}

/// Applies the patch of one file to the tree in memory.
fn apply_to(
    operation: &FileOperation<'_, str>,
    patch: &FilePatch<'_, str>,
    places: &[Place],
    fuzz: usize,
    tree: &mut Tree,
) -> Result<Changed> {
    let (changed, hunks) = changed(patch, operation)?;
    let edit = |path: &str, text: &str| {
        hunks::apply(text, hunks, places, fuzz).map_err(|problem| error!("`{path}`: {problem}"))
    };
    match operation {
        FileOperation::Create(path) => tree.create(path, edit(path, "")?)?,
        FileOperation::Delete(path) => {
            if !edit(path, tree.read(path)?)?.is_empty() {
                return Err(error!("`{path}`: the patch deletes the file, but does not remove all of its lines"));
            }
            tree.delete(path)?;
        }
        FileOperation::Modify { original: path, .. } => {
            let text = tree.read(path)?;
            let edited = edit(path, text)?;
            if edited == text {
                return Err(error!("`{path}`: the patch changes nothing: its removed and added lines are the same"));
            }
            tree.write(path, edited)?;
        }
        FileOperation::Rename { from, to } => {
            let edited = edit(from, tree.read(from)?)?;
            tree.rename(from, to, edited)?;
        }
        FileOperation::Copy { from, to } => {
            let edited = edit(from, tree.read(from)?)?;
            tree.create(to, edited)?;
        }
    }
    Ok(changed)
}

/// Returns the change of a file and its hunks.
fn changed<'a>(
    patch: &'a FilePatch<'_, str>,
    operation: &FileOperation<'_, str>,
) -> Result<(Changed, &'a Patch<'a, str>)> {
    let (change, path, from) = match operation {
        FileOperation::Create(path) => (Kind::Created, path, None),
        FileOperation::Delete(path) => (Kind::Deleted, path, None),
        FileOperation::Modify { original, modified } if original != modified => {
            return Err(error!(
                "the patch names two files, `{original}` and `{modified}`; check the paths and `strip`, or use `rename from` and `rename to`"
            ));
        }
        FileOperation::Modify { modified: path, .. } => (Kind::Modified, path, None),
        FileOperation::Rename { from, to } => (Kind::Renamed, to, Some(from.to_string())),
        FileOperation::Copy { from, to } => (Kind::Copied, to, Some(from.to_string())),
    };
    let special = |mode: &&FileMode| matches!(mode, FileMode::Symlink | FileMode::Gitlink);
    let is_special = [patch.old_mode(), patch.new_mode()].into_iter().flatten().any(|mode| special(&mode));
    let Some(hunks) = patch.patch().as_text().filter(|_| !is_special) else {
        return Err(error!("`{path}`: only text files can be patched"));
    };
    let ignored = ignored_mode(patch);
    if matches!(change, Kind::Modified) && hunks.hunks().is_empty() {
        return Err(match ignored {
            Some(_) => error!("`{path}`: the patch only changes the mode of the file, which this tool cannot"),
            None => error!(
                "`{path}`: the patch has no hunk for it; a hunk is `@@` and lines that begin with a space, `-` or `+`"
            ),
        });
    }
    let (added, removed) = count(hunks);
    Ok((Changed { path: path.to_string(), change, from, added, removed, ignored }, hunks))
}

/// Names the change of a mode that is not made: a tool cannot set modes.
fn ignored_mode(patch: &FilePatch<'_, str>) -> Option<&'static str> {
    match (patch.old_mode(), patch.new_mode()) {
        (Some(FileMode::Executable), Some(FileMode::Regular)) => Some("the file is still executable"),
        (Some(FileMode::Regular) | None, Some(FileMode::Executable)) => Some("the file was not made executable"),
        _ => None,
    }
}

/// Operation with the leading parts of its paths removed.
fn stripped<'a>(operation: &'a FileOperation<'_, str>, strip: Option<usize>) -> FileOperation<'a, str> {
    let prefixed = match operation {
        FileOperation::Create(path) => path.starts_with("b/"),
        FileOperation::Delete(path) => path.starts_with("a/"),
        FileOperation::Modify { original, modified } => original.starts_with("a/") && modified.starts_with("b/"),
        // These paths come from `rename from` and similar lines, which have no prefix.
        FileOperation::Rename { .. } | FileOperation::Copy { .. } => {
            return operation.strip_prefix(strip.unwrap_or(0).saturating_sub(1));
        }
    };
    operation.strip_prefix(strip.unwrap_or(usize::from(prefixed)))
}

/// Number of added and removed lines.
fn count(patch: &Patch<'_, str>) -> (usize, usize) {
    let lines = || patch.hunks().iter().flat_map(|hunk| hunk.lines());
    (
        lines().filter(|line| matches!(line, Line::Insert(_))).count(),
        lines().filter(|line| matches!(line, Line::Delete(_))).count(),
    )
}
