//! The difference of a stage, compared with the trees before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use toolcrib::staging::{Change, ChangeKind, Stage};

use super::tree::{Kind, Tree};

/// Asserts that the changes of a stage, made to the tree before, give the tree after, and that none is missing or made up.
pub(super) fn compare(stage: &Arc<Stage>, root: &Path, before: &Tree, after: &Tree) {
    let changes = stage.changes().unwrap();
    let below = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let (removed, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.kind == ChangeKind::Removed);
    let removed: BTreeSet<String> = removed.iter().map(|change| below(&change.path)).collect();
    let by_path: BTreeMap<String, &Change> = others.iter().map(|change| (below(&change.path), *change)).collect();
    let mut explained: BTreeSet<String> = BTreeSet::new();
    for (path, entry) in after {
        let origin = origin(path, &by_path);
        if let Some(origin) = &origin {
            explained.insert(origin.clone());
        }
        match by_path.get(path) {
            Some(change) => assert_eq!(content(stage, change, origin.as_deref(), before), entry.kind, "{change:?}"),
            None => {
                let origin = origin.unwrap_or_else(|| panic!("no change explains `{path}`"));
                let was = before.get(&origin).unwrap_or_else(|| panic!("`{path}` was not at `{origin}`"));
                assert_eq!(was.kind, entry.kind, "`{path}` differs from `{origin}`, and no change says so");
            }
        }
    }
    for (path, change) in &by_path {
        assert!(after.contains_key(path), "nothing is there: {change:?}");
        let is_new = change.kind == ChangeKind::Added;
        assert!(!is_new || !before.contains_key(path) || is_taken(path, &removed, &explained), "{change:?}");
        // A new file in the place of another.
        if change.kind == ChangeKind::Modified {
            assert!(origin(path, &by_path).is_some_and(|origin| before.contains_key(&origin)), "{change:?}");
        }
    }
    for path in before.keys() {
        assert_ne!(
            removed.contains(path),
            explained.contains(path),
            "`{path}` is gone, or is not, and no change says so"
        );
    }
    assert!(removed.iter().all(|path| before.contains_key(path)), "{removed:?}");
}

/// Lists the files and links that no change names, each with its path before.
pub(super) fn untouched(stage: &Arc<Stage>, root: &Path, before: &Tree, after: &Tree) -> Vec<(String, String)> {
    let changes = stage.changes().unwrap();
    let others = changes.iter().filter(|change| change.kind != ChangeKind::Removed);
    let path = |change: &Change| change.path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let by_path: BTreeMap<String, &Change> = others.map(|change| (path(change), change)).collect();
    let paths = after.iter().filter(|(path, entry)| entry.kind != Kind::Folder && !by_path.contains_key(*path));
    let with_origin = paths.filter_map(|(path, _)| Some((path.clone(), origin(path, &by_path)?)));
    with_origin.filter(|(_, origin)| before.contains_key(origin)).collect()
}

fn is_taken(path: &str, removed: &BTreeSet<String>, explained: &BTreeSet<String>) -> bool {
    removed.contains(path) || explained.contains(path)
}

/// Returns where an entry was before: the changes of the folders above it say so. `None` for a new one.
fn origin(path: &str, changes: &BTreeMap<String, &Change>) -> Option<String> {
    let mut above = path;
    loop {
        if let Some(change) = changes.get(above) {
            let rest = &path[above.len()..];
            return match change.kind {
                ChangeKind::Moved => {
                    let from = change.from.as_ref().unwrap().to_str().unwrap();
                    // The paths of changes are below the same root as the path in the tree.
                    let root = change.path.to_str().unwrap().len() - above.len();
                    Some(format!("{}{rest}", &from[root..]))
                }
                // It is in the folder in which it was, wherever that is now.
                ChangeKind::Modified => {
                    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                    origin(folder, changes).map(|above| format!("{above}/{name}").trim_start_matches('/').to_owned())
                }
                _ => None,
            };
        }
        match above.rsplit_once('/') {
            Some((folder, _)) => above = folder,
            None => return Some(path.to_owned()),
        }
    }
}

/// Returns what a change leaves at its path.
fn content(stage: &Stage, change: &Change, origin: Option<&str>, before: &Tree) -> Kind {
    if let Some(target) = stage.link(change) {
        return Kind::Link(target);
    }
    if let Some(mut file) = stage.after(change).unwrap() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(change.after, Some(bytes.len() as u64), "{change:?}");
        return Kind::File(bytes);
    }
    match origin.and_then(|origin| before.get(origin)) {
        Some(entry) if change.kind == ChangeKind::Moved => entry.kind.clone(),
        _ => Kind::Folder,
    }
}
