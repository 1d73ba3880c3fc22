//! Tool `apply_patch`: edits text files by a patch in one of two dialects. An envelope names files and shows lines with their
//! context, without line numbers; a unified diff is the output of `diff` and `git diff`. Either the whole patch applies, or no
//! file is changed.

mod diff;
mod envelope;

use serde::Serialize;
use toolcrib_guest::files::Tree;
use toolcrib_guest::{Answer, Call, Error, Opinion, Part, Payload, Result, error, lines, tool, tools};

tools!(apply_patch);

const MAX_BYTES: usize = 1 << 20;
const MAX_FILES: usize = 1000;
/// Maximum changes that are listed for the model.
const MAX_LISTED: usize = 100;
const MAX_STRIP: usize = 8;
const MAX_FUZZ: usize = 1000;
/// Value of `fuzz` that the schema names as its default.
const DEFAULT_FUZZ: usize = 200;

/// Edit up to 1000 UTF-8 files, or none. `patch` is a unified diff (create: `--- /dev/null`, delete: `+++ /dev/null`, rename;
/// a hunk without line numbers must fit at one place only), or `*** Begin Patch`, sections and `*** End Patch`:
/// `*** Update File: PATH`, if renamed `*** Move to: PATH`, then hunks of optional lines `@@ LINE` that name lines above,
/// and lines with a space (kept, three around a change), `-` (removed) or `+` (added); `*** Add File: PATH` and lines with `+`;
/// `*** Delete File: PATH`. Kept and removed lines match but for line ends.
#[tool(
    text(field = "patch", lark_file = "src/patch.lark"),
    files = "write",
    timeout = "30s",
    interface(search_hint = "edit change files patch diff"),
    validate = validate,
    preview = preview,
    route = route
)]
fn apply_patch(
    patch: &str,
    /// Diff: leading path parts to remove; default 1 for `a/`, `b/`
    #[arg(minimum = 0, maximum = 8)]
    strip: Option<usize>,
    /// Diff: lines a hunk may have moved
    #[arg(default = 200, minimum = 0, maximum = 1000)]
    fuzz: usize,
    dry_run: Option<bool>,
) -> Result<Answer> {
    check(patch, strip, fuzz)?;
    let dry_run = dry_run.unwrap_or(false);
    let mut tree = Tree::default();
    if !envelope::is_begun(patch) {
        let files = diff::apply(patch, strip, fuzz, &mut tree)?;
        commit(tree, dry_run)?;
        return Ok(Answer::json(&Output::new(files, dry_run))?.show(Part::text(patch)));
    }
    let changes = envelope::parse(patch)?;
    for change in &changes {
        change.apply(&mut tree)?;
    }
    commit(tree, dry_run)?;
    let files: Vec<Changed> = changes.iter().map(envelope::Change::changed).collect();
    let shown: Vec<String> = files
        .iter()
        .zip(&changes)
        .flat_map(|(file, change)| [file.describe(!dry_run)].into_iter().chain(change.lines()))
        .map(|line| line + "\n")
        .collect();
    Ok(Answer::text(listed(&files, !dry_run)).show(Part::text(shown.concat())))
}

/// Checks the sizes of a call, and that each option is one of the patch's dialect.
fn check(patch: &str, strip: Option<usize>, fuzz: usize) -> Result<()> {
    if patch.len() > MAX_BYTES {
        return Err(Error::invalid(format!("the patch has {} bytes, over the limit of {MAX_BYTES}", patch.len())));
    }
    if let Some(strip) = strip.filter(|strip| *strip > MAX_STRIP) {
        return Err(error!("strip `{strip}` is not between 0 and {MAX_STRIP}"));
    }
    if fuzz > MAX_FUZZ {
        return Err(error!("fuzz `{fuzz}` is not between 0 and {MAX_FUZZ}"));
    }
    if !envelope::is_begun(patch) {
        return Ok(());
    }
    if strip.is_some() {
        return Err(Error::invalid("`strip` is for unified diffs: write the paths of this patch as they are"));
    }
    // Some models write each default into their calls.
    match fuzz == DEFAULT_FUZZ {
        true => Ok(()),
        false => {
            Err(Error::invalid("`fuzz` is for unified diffs: the lines of this patch are found wherever they are"))
        }
    }
}

fn commit(tree: Tree, dry_run: bool) -> Result<()> {
    if dry_run { Ok(()) } else { tree.commit() }
}

/// Changed file.
#[derive(Serialize)]
struct Changed {
    path: String,
    change: Kind,
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

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Created,
    Deleted,
    Modified,
    Renamed,
    Copied,
}

impl Changed {
    /// Describes the change in one line, in the past tense if it was made.
    fn describe(&self, made: bool) -> String {
        let Self { path, added, removed, .. } = self;
        let word = |infinitive: &'static str, past: &'static str| if made { past } else { infinitive };
        let edit = word("edit", "edited");
        match (self.change, self.from.as_deref().unwrap_or_default()) {
            (Kind::Created, _) => format!("{} {path} (+{added})", word("add", "added")),
            (Kind::Deleted, _) => format!("{} {path}", word("delete", "deleted")),
            (Kind::Modified, _) => format!("{edit} {path} (+{added} -{removed})"),
            (Kind::Renamed, from) => format!("{edit} {from} to {path} (+{added} -{removed})"),
            (Kind::Copied, from) => format!("{} {from} to {path} (+{added} -{removed})", word("copy", "copied")),
        }
    }
}

/// Lists changes, one line each, and the number of those that are not listed.
fn listed(files: &[Changed], made: bool) -> String {
    let mut lines: Vec<String> = files.iter().take(MAX_LISTED).map(|file| file.describe(made)).collect();
    if let more @ 1.. = files.len().saturating_sub(MAX_LISTED) {
        lines.push(format!("and {more} more files"));
    }
    lines.join("\n")
}

/// Result of a unified diff.
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

impl Output {
    fn new(mut files: Vec<Changed>, dry_run: bool) -> Self {
        let total = (files.len() > MAX_LISTED).then(|| Total {
            files: files.len(),
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
            ignored: files.iter().filter(|file| file.ignored.is_some()).count(),
        });
        files.truncate(MAX_LISTED);
        Self { files, total, dry_run }
    }
}

/// Returns the changes of a call by its patch alone, without reading files.
fn changes(call: &Call) -> Result<Vec<Changed>> {
    let args: apply_patch = call.args()?;
    check(&args.patch, args.strip, args.fuzz)?;
    match envelope::is_begun(&args.patch) {
        true => Ok(envelope::parse(&args.patch)?.iter().map(envelope::Change::changed).collect()),
        false => diff::changes(&args.patch, args.strip),
    }
}

/// Refuses a text that is no patch before anybody is asked about the call.
fn validate(call: &Call) -> Result<()> {
    changes(call).map(|_| ())
}

/// Describes the patch from its text alone, without reading files.
fn preview(call: &Call) -> Result<String> {
    Ok(listed(&changes(call)?, false))
}

/// Claims a text without a tool name if it begins as a patch. A text with this tool's name is not rejected here, since
/// `validate` states the reason.
fn route(call: &Call) -> Opinion {
    match &call.payload {
        Payload::Text(text) if envelope::is_begun(text) => Opinion::Claims,
        _ => Opinion::NoOpinion,
    }
}

/// Quotes a line for a message.
fn shown(line: &str) -> String {
    const MAX_SHOWN: usize = 120;
    lines::content(line).replace('\r', "\\r").chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests;
