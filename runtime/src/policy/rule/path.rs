//! Texts of a path that mean one file: with `.` and `..` resolved, with and without the name of the first granted folder, and as a
//! file system compares them.

use std::borrow::Cow;

use crate::schema::step;
use crate::tool::Glob;
use crate::tool::names::NameRules;

use super::{BYTES_PER_STEP, STEPS_PER_VALUE};

/// Returns `true` if a path matches a glob over paths as the file system compares them.
pub(super) fn matches_folded((names, glob): &(NameRules, Glob), text: &str, root: Option<&str>) -> bool {
    // Folding visits the text several times.
    if !step(STEPS_PER_VALUE + text.len()) {
        return false;
    }
    let Some(path) = names.fold_path(text) else { return false };
    let root = root.and_then(|root| names.fold_path(root));
    let path = resolve_path(&path, &['/']);
    spellings(&path, root.as_deref()).any(|spelling| step(spelling.len() / BYTES_PER_STEP) && glob.is_match(&spelling))
}

/// Spellings of a path: as given and, if the first granted folder has a name, with that name added or removed.
pub(super) fn spellings<'p>(path: &'p str, root: Option<&str>) -> impl Iterator<Item = Cow<'p, str>> {
    let other = root.map(|root| {
        let named = path.trim_start_matches('/').strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        named.map_or_else(|| format!("{root}/{}", path.trim_start_matches('/')), str::to_owned)
    });
    std::iter::once(Cow::Borrowed(path)).chain(other.map(Cow::Owned))
}

/// Returns `true` if [`resolve_path`] leaves a path as it is, whatever its separators.
pub(super) fn is_resolved(path: &str) -> bool {
    !path.contains('\\') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Resolves `.`, `..` and doubled separators of a path, relative to the guest's `/`.
pub(super) fn resolve_path(text: &str, separators: &[char]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(separators) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
