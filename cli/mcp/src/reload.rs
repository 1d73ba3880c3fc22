//! Reload: sources that changed on disk are read again. A broken source keeps the last good state.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib::source::usable_parts;
use toolcrib_base::file_version::FileVersion;
use toolcrib_base::render;

use super::publication::Publication;

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of files that are watched.
const MAX_WATCHED: usize = 10_000;

/// Version of a file; `None` without a file.
type FileState = Option<FileVersion>;

/// Files of some sources with their states.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot(Vec<(PathBuf, FileState)>);

impl Snapshot {
    /// Lists the files of the sources. A broken source has the files of `before`.
    fn of(sources: &[PathBuf], before: Option<&Self>) -> Self {
        let mut files = BTreeSet::new();
        for source in sources {
            files.insert(source.clone());
            let Ok(parts) = usable_parts(source) else {
                files.extend(before.iter().flat_map(|before| &before.0).map(|(file, _)| file.clone()));
                continue;
            };
            // A new file changes its folder. The folder of a source that is a file belongs to others.
            if source.is_dir() {
                let folders = parts.definitions.iter().filter_map(|file| file.parent()).map(Path::to_path_buf);
                files.extend(folders.collect::<Vec<_>>());
            }
            files.extend(parts.definitions.into_iter().chain(parts.programs));
        }
        if files.len() > MAX_WATCHED {
            let number = files.len();
            render::warning(&format!("{number} files are too many to watch: only the first {MAX_WATCHED} are"));
        }
        Self(files.into_iter().take(MAX_WATCHED).map(|file| (file.clone(), state(&file))).collect())
    }

    /// Returns `true` if no file changed.
    fn is_current(&self) -> bool {
        self.0.iter().all(|(file, before)| state(file) == *before)
    }
}

fn state(file: &Path) -> FileState {
    Some(FileVersion::of(&file.metadata().ok()?))
}

/// Sources with their state before they were read, so that no change since then is missed.
pub struct WatchedSources {
    sources: Vec<PathBuf>,
    before: Snapshot,
}

impl WatchedSources {
    /// Looks at sources that are about to be read. This blocks.
    pub fn of(sources: Vec<PathBuf>) -> Self {
        let before = Snapshot::of(&sources, None);
        Self { sources, before }
    }
}

/// Watches sources as long as the program runs, and publishes their tools again after a change.
pub async fn watch(publication: Publication, watched: WatchedSources) {
    let WatchedSources { sources, before: mut present } = watched;
    let list = move |before: Option<Snapshot>| Snapshot::of(&sources, before.as_ref());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let looked = present.clone();
        if blocking(move || looked.is_current()).await.unwrap_or(true) {
            continue;
        }
        let (list, before, publication) = (list.clone(), present.clone(), publication.clone());
        // Listed before they are read: a change meanwhile is a change of its own.
        let Ok((next, reloaded)) = blocking(move || (list(Some(before)), publication.reload())).await else { return };
        present = next;
        match reloaded {
            Ok(true) => render::aside("reloaded: the list of tools changed"),
            Ok(false) => render::aside("reloaded"),
            Err(error) => render::warning(&format!("the last good tools stay: {}", render::message(&error))),
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_file_and_a_new_file_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("tools.json");
        std::fs::write(&manifest, r#"{"tools":[]}"#).unwrap();
        let sources = [manifest.clone()];
        let before = Snapshot::of(&sources, None);
        std::fs::write(folder.path().join("results.json"), "{}").unwrap();
        assert!(before.is_current(), "a file beside the source");
        std::fs::write(&manifest, r#"{"tools": []}"#).unwrap();
        assert!(!before.is_current());
        let before = Snapshot::of(&sources, None);
        std::fs::write(&manifest, "broken").unwrap();
        assert!(!before.is_current());
        let broken = Snapshot::of(&sources, Some(&before));
        assert!(broken.0.iter().map(|(file, _)| file).eq(before.0.iter().map(|(file, _)| file)));
        std::fs::remove_file(&manifest).unwrap();
        assert!(!broken.is_current());
    }

    #[test]
    fn the_number_of_watched_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let sources: Vec<PathBuf> = (0..=MAX_WATCHED).map(|number| folder.path().join(number.to_string())).collect();
        assert_eq!(Snapshot::of(&sources[1..], None).0.len(), MAX_WATCHED);
        let most = Snapshot::of(&sources, None);
        assert_eq!(most.0.len(), MAX_WATCHED);
        // A broken source keeps the files of before, which count as well.
        assert_eq!(Snapshot::of(&[folder.path().join("more")], Some(&most)).0.len(), MAX_WATCHED);
    }
}
