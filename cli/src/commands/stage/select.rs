//! Choice of changes by their paths and calls.

use std::path::{Component, Path, PathBuf};

use toolcrib::staging::{Change, Refused};
use toolcrib::tool::Glob;
use toolcrib_base::render::{self, Advice, from_here};

/// Changes that are meant; all of them without an option.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Paths or patterns, such as `src/a.rs`, `src` or `'src/*.rs'`; `*` also matches `/`
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Only changes by this tool or this call: its `invocation` in `toolcrib audit show --json`
    #[arg(long, value_name = "ID")]
    call: Option<String>,
}

impl Selection {
    /// Returns `true` if all changes are meant.
    pub(super) fn is_all(&self) -> bool {
        self.paths.is_empty() && self.call.is_none()
    }

    /// Warns about changes of the call that other calls have a part in.
    pub(super) fn warn_about_others(&self, chosen: &[Change]) {
        for change in chosen.iter().filter(|change| self.call.is_some() && change.calls.len() > 1) {
            let path = render::one_line(&from_here(&change.path).display().to_string());
            render::warning(&format!("`{path}` was changed by {} calls: all of their changes go", change.calls.len()));
        }
    }

    /// Returns the changes that are meant.
    ///
    /// # Errors
    ///
    /// A path, or the call, has no change.
    pub(super) fn of(&self, changes: Vec<Change>) -> anyhow::Result<Vec<Change>> {
        let has = |pattern: &Pattern| changes.iter().any(|change| pattern.matches(change));
        let patterns = patterns(&self.paths, has, "`toolcrib stage diff --stat` lists the changes")?;
        let is_of_call = |change: &Change| match &self.call {
            Some(call) => change.calls.iter().any(|one| one.id == *call || one.tool == *call),
            None => true,
        };
        if !changes.is_empty() && !changes.iter().any(is_of_call) {
            let call = render::excerpt(self.call.as_deref().unwrap_or_default());
            let hint = "`toolcrib stage diff --json` names the calls of each change";
            return Err(Advice::new(format!("no change is of the call `{call}`"), hint).into());
        }
        let is_at = |change: &Change| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(change));
        let chosen: Vec<Change> = changes.into_iter().filter(|change| is_at(change) && is_of_call(change)).collect();
        match chosen.is_empty() && !self.is_all() {
            true => Err(Advice::new("no change matches", "`toolcrib stage diff --stat` lists the changes").into()),
            false => Ok(chosen),
        }
    }
}

/// Removes the changes at the paths, or below them, from an undo, and returns the others. Of what stays, only that at the paths is left.
///
/// # Errors
///
/// A path has no change.
pub(crate) fn take_others(
    paths: &[String],
    changes: Vec<Change>,
    stays: &mut Vec<Refused>,
) -> anyhow::Result<Vec<Change>> {
    let has = |pattern: &Pattern| {
        changes.iter().any(|change| pattern.matches(change)) || stays.iter().any(|one| pattern.is_at(&one.path))
    };
    let patterns = patterns(paths, has, "`toolcrib undo ID --dry-run` lists the changes")?;
    stays.retain(|one| patterns.iter().any(|pattern| pattern.is_at(&one.path)));
    Ok(changes.into_iter().filter(|change| !patterns.iter().any(|pattern| pattern.matches(change))).collect())
}

fn patterns(paths: &[String], has: impl Fn(&Pattern) -> bool, hint: &str) -> anyhow::Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for path in paths {
        let pattern = Pattern::parse(path)?;
        if !has(&pattern) {
            let message = format!("no change is at `{}`, so nothing was done", render::excerpt(path));
            return Err(Advice::new(message, hint).into());
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

/// Pattern, or the path of an entry or a folder above it.
enum Pattern {
    Path(PathBuf),
    /// Pattern for paths below the current directory.
    Below(Vec<Glob>),
    /// Pattern for absolute paths.
    Absolute(Vec<Glob>),
}

impl Pattern {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let literal = normal(&std::path::absolute(text)?);
        if !text.contains(['*', '?', '[', '{']) {
            return Ok(Self::Path(literal));
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        // `**/` also stands for no folder.
        let variants = [text.to_owned(), text.replace("**/", "")];
        let globs: Result<Vec<Glob>, _> = variants.iter().map(|variant| variant.parse()).collect();
        let globs = globs.map_err(|error| {
            Advice::new(
                format!("`{}` is not a valid pattern: {error}", render::excerpt(text)),
                "write one such as 'src/*'",
            )
        })?;
        Ok(if Path::new(text).is_absolute() { Self::Absolute(globs) } else { Self::Below(globs) })
    }

    fn matches(&self, change: &Change) -> bool {
        let paths = [Some(change.path.as_path()), change.from.as_deref()];
        paths.into_iter().flatten().any(|path| self.is_at(path))
    }

    fn is_at(&self, path: &Path) -> bool {
        let here = || std::env::current_dir().unwrap_or_default();
        let is_match = |globs: &[Glob], path: &Path| globs.iter().any(|glob| glob.is_match(&path.to_string_lossy()));
        match self {
            Self::Path(wanted) => path.starts_with(wanted),
            Self::Absolute(globs) => is_match(globs, path),
            Self::Below(globs) => path.strip_prefix(here()).is_ok_and(|below| is_match(globs, below)),
        }
    }
}

/// Returns an absolute path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_parents_is_the_same_place() {
        for (path, expected) in [("/a/../b", "/b"), ("/a/b/..", "/a"), ("/..", "/"), ("/a", "/a")] {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
