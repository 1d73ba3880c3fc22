//! Tool `fs_apply_patch`: applies a unified diff to several text files, completely or not at all.

mod completion;
mod hunks;

use std::process::ExitCode;

use diffy::patch_set::{FileMode, FileOperation, FilePatch, ParseOptions, PatchSet};
use diffy::{Line, Patch};
use serde::{Deserialize, Serialize};
use toolcrib_guest::files::Tree;
use toolcrib_guest::{Error, error, lines};

use completion::{Completed, Place};

const MAX_PATCH_BYTES: usize = 1024 * 1024;
const MAX_FILES: usize = 1000;
/// Maximum files that are listed.
const MAX_LISTED: usize = 100;
const MAX_STRIP: usize = 8;
const MAX_FUZZ: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    patch: String,
    strip: Option<usize>,
    #[serde(default = "default_fuzz")]
    fuzz: usize,
    #[serde(default)]
    dry_run: bool,
}

fn default_fuzz() -> usize {
    200
}

#[derive(Serialize)]
struct Output {
    /// The first changed files.
    files: Vec<Changed>,
    /// Numbers for all files, if not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Total>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Total {
    files: usize,
    added: usize,
    removed: usize,
    /// Number of files that a part of the patch was not applied to; a listed one has the reason.
    #[serde(skip_serializing_if = "is_zero")]
    ignored: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Changed {
    path: String,
    change: &'static str,
    /// Previous path of a renamed or copied file.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Number of added lines.
    added: usize,
    /// Number of removed lines.
    removed: usize,
    /// Part of the patch that was not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<&'static str>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { patch, strip, fuzz, dry_run } = args;
    if patch.len() > MAX_PATCH_BYTES {
        return Err(error!("the patch is {} bytes, over the limit of {MAX_PATCH_BYTES}", patch.len()));
    }
    if let Some(strip) = strip.filter(|strip| *strip > MAX_STRIP) {
        return Err(error!("strip `{strip}` is not between 0 and {MAX_STRIP}"));
    }
    if fuzz > MAX_FUZZ {
        return Err(error!("fuzz `{fuzz}` is not between 0 and {MAX_FUZZ}"));
    }
    let mut tree = Tree::default();
    let mut files = Vec::new();
    let Completed { text, places } = completion::complete(lines::split_mark(&patch).1)?;
    let mut places = places.as_slice();
    for patch in parse(&text)? {
        let hunks = patch.patch().as_text().map_or(0, |patch| patch.hunks().len());
        let (of_file, rest) = places.split_at_checked(hunks).ok_or_else(|| error!("a hunk has no header"))?;
        places = rest;
        files.push(apply(&patch, of_file, &Options { strip, fuzz }, &mut tree)?);
    }
    if !places.is_empty() {
        return Err(error!(
            "{} hunks of the patch belong to no file; each file begins with `---` and `+++`",
            places.len()
        ));
    }
    if !dry_run {
        tree.commit()?;
    }
    let total = (files.len() > MAX_LISTED).then(|| Total {
        files: files.len(),
        added: files.iter().map(|file| file.added).sum(),
        removed: files.iter().map(|file| file.removed).sum(),
        ignored: files.iter().filter(|file| file.ignored.is_some()).count(),
    });
    files.truncate(MAX_LISTED);
    Ok(Output { files, total, dry_run })
}

fn parse(patch: &str) -> Result<Vec<FilePatch<'_, str>>, Error> {
    let options = if patch.lines().any(|line| line.starts_with("diff --git ")) {
        ParseOptions::gitdiff()
    } else {
        ParseOptions::unidiff()
    };
    let patches: Vec<_> = PatchSet::parse(patch, options).take(MAX_FILES + 1).collect::<Result<_, _>>()?;
    match patches.len() {
        0 => Err(error!("the patch names no file; it must be a unified diff with `---`, `+++` and `@@` lines")),
        1..=MAX_FILES => Ok(patches),
        _ => Err(error!("the patch is for more than {MAX_FILES} files")),
    }
}

struct Options {
    strip: Option<usize>,
    fuzz: usize,
}

/// Applies the patch of one file to the tree in memory.
fn apply(patch: &FilePatch<'_, str>, places: &[Place], options: &Options, tree: &mut Tree) -> Result<Changed, Error> {
    let operation = stripped(patch.operation(), options.strip);
    let modes = [patch.old_mode(), patch.new_mode()];
    let special = |mode: &&FileMode| matches!(mode, FileMode::Symlink | FileMode::Gitlink);
    let Some(hunks) = patch.patch().as_text().filter(|_| !modes.into_iter().flatten().any(|mode| special(&mode)))
    else {
        return Err(error!("{}: only text files can be patched", name(&operation)));
    };
    let ignored = ignored_mode(patch);
    let change = |path: &str, change, from: Option<&str>| {
        let (added, removed) = count(hunks);
        Changed { path: path.into(), change, from: from.map(String::from), added, removed, ignored }
    };
    let edit = |path: &str, text: &str| {
        hunks::apply(text, hunks, places, options.fuzz).map_err(|problem| error!("`{path}`: {problem}"))
    };
    match &operation {
        FileOperation::Create(path) => {
            tree.create(path, edit(path, "")?)?;
            Ok(change(path, "created", None))
        }
        FileOperation::Delete(path) => {
            if !edit(path, tree.read(path)?)?.is_empty() {
                return Err(error!("`{path}`: the patch deletes the file, but does not remove all of its lines"));
            }
            tree.delete(path)?;
            Ok(change(path, "deleted", None))
        }
        FileOperation::Modify { original, modified } if original == modified => {
            if hunks.hunks().is_empty() {
                return Err(match ignored {
                    Some(_) => {
                        error!("`{original}`: the patch only changes the mode of the file, which this tool cannot")
                    }
                    None => error!(
                        "`{original}`: the patch has no hunk for it; a hunk is `@@` and lines that begin with a space, `-` or `+`"
                    ),
                });
            }
            let text = tree.read(original)?;
            let edited = edit(original, text)?;
            if edited == text {
                return Err(error!(
                    "`{original}`: the patch changes nothing: its removed and added lines are the same"
                ));
            }
            tree.write(original, edited)?;
            Ok(change(original, "modified", None))
        }
        FileOperation::Modify { original, modified } => Err(error!(
            "the patch names two files, `{original}` and `{modified}`; check the paths and `strip`, or use `rename from` and `rename to`"
        )),
        FileOperation::Rename { from, to } => {
            let edited = edit(from, tree.read(from)?)?;
            tree.rename(from, to, edited)?;
            Ok(change(to, "renamed", Some(from)))
        }
        FileOperation::Copy { from, to } => {
            let edited = edit(from, tree.read(from)?)?;
            tree.create(to, edited)?;
            Ok(change(to, "copied", Some(from)))
        }
    }
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

fn name(operation: &FileOperation<'_, str>) -> String {
    match operation {
        FileOperation::Create(path) | FileOperation::Delete(path) => format!("`{path}`"),
        FileOperation::Modify { modified: path, .. }
        | FileOperation::Rename { to: path, .. }
        | FileOperation::Copy { to: path, .. } => format!("`{path}`"),
    }
}

/// Number of added and removed lines.
fn count(patch: &Patch<'_, str>) -> (usize, usize) {
    let lines = || patch.hunks().iter().flat_map(|hunk| hunk.lines());
    (
        lines().filter(|line| matches!(line, Line::Insert(_))).count(),
        lines().filter(|line| matches!(line, Line::Delete(_))).count(),
    )
}
