//! Changes of files, and of those below folders, for commands that repeat their work: a change counts once the files are at rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib_base::file_version::FileVersion;
use toolcrib_base::source_files;

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(300);
/// Extension of built components.
const COMPONENT: &str = "wasm";

/// Version of each file.
type Files = BTreeMap<PathBuf, FileVersion>;

/// Files that are watched, and source files below folders that are.
pub struct Changes {
    roots: Vec<PathBuf>,
    /// `true` if components count as sources.
    with_components: bool,
    seen: Files,
}

impl Changes {
    /// Looks at the files at and below `root` for the first time.
    pub fn below(root: &Path, with_components: bool) -> Self {
        let seen = files(root, with_components);
        Self { roots: vec![root.to_path_buf()], with_components, seen }
    }

    /// Watches more paths, which count as seen in the state that they have now.
    pub fn also(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            if !self.roots.contains(&path) {
                for (file, state) in files(&path, self.with_components) {
                    self.seen.entry(file).or_insert(state);
                }
                self.roots.push(path);
            }
        }
    }

    /// Waits until files have changed since the last look, and no more change within one interval. Returns one of them.
    pub async fn next(&mut self) -> PathBuf {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let mut now = self.look();
            let Some(changed) = changed(&self.seen, &now) else { continue };
            loop {
                tokio::time::sleep(INTERVAL).await;
                let later = self.look();
                if later == now {
                    break;
                }
                now = later;
            }
            self.seen = now;
            return changed;
        }
    }

    fn look(&self) -> Files {
        self.roots.iter().flat_map(|root| files(root, self.with_components)).collect()
    }
}

/// Lists the files at and below a path, in the order of their paths, as far as they are looked at.
pub fn below(root: &Path) -> impl Iterator<Item = PathBuf> {
    files(root, true).into_keys()
}

/// Returns a file that is new, changed or gone.
fn changed(before: &Files, now: &Files) -> Option<PathBuf> {
    let other = now.iter().find(|(path, state)| before.get(*path) != Some(state)).map(|(path, _)| path);
    other.or_else(|| before.keys().find(|path| !now.contains_key(*path))).cloned()
}

fn files(root: &Path, with_components: bool) -> Files {
    let is_component = |path: &Path| path.extension().is_some_and(|extension| extension == COMPONENT);
    let all = source_files::below(root).into_iter();
    let sources = all.filter(|(path, _)| with_components || !is_component(path));
    sources.map(|(path, about)| (path, FileVersion::of(&about))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_of_a_source_counts_and_one_of_an_output_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        write("src/lib.rs");
        let before = files(folder.path(), false);
        for name in ["target/x", "greet.wasm", ".git/index", "node_modules/a.js"] {
            write(name);
        }
        assert_eq!(changed(&before, &files(folder.path(), false)), None);
        assert!(changed(&before, &files(folder.path(), true)).is_some_and(|path| path.ends_with("greet.wasm")));
        write("src/new.rs");
        assert!(changed(&before, &files(folder.path(), false)).is_some_and(|path| path.ends_with("src/new.rs")));
        fs::remove_file(folder.path().join("src/new.rs")).unwrap();
        fs::remove_file(folder.path().join("src/lib.rs")).unwrap();
        assert!(changed(&before, &files(folder.path(), false)).is_some_and(|path| path.ends_with("src/lib.rs")));
    }

    #[tokio::test]
    async fn a_change_is_reported_once_the_files_are_at_rest() {
        let folder = tempfile::tempdir().unwrap();
        let mut changes = Changes::below(folder.path(), false);
        fs::write(folder.path().join("a.md"), "x").unwrap();
        assert!(changes.next().await.ends_with("a.md"));
        let more = tokio::time::timeout(INTERVAL * 4, changes.next()).await;
        assert!(more.is_err(), "each change is reported once");
    }
    #[tokio::test]
    async fn a_file_elsewhere_is_watched_from_the_time_that_it_is_named() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = other.path().join("greet.wasm");
        let mut changes = Changes::below(folder.path(), true);
        fs::write(&path, "x").unwrap();
        changes.also([path.clone(), other.path().join("absent.json")]);
        changes.also([path.clone()]);
        let early = tokio::time::timeout(INTERVAL * 4, changes.next()).await;
        assert!(early.is_err(), "it was named in this state");
        fs::write(&path, "changed").unwrap();
        assert_eq!(changes.next().await, path);
        fs::write(other.path().join("absent.json"), "x").unwrap();
        assert!(changes.next().await.ends_with("absent.json"));
    }
}
