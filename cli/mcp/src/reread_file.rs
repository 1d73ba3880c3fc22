//! Value of a file that the host names, read again when the file changes. A file with a mistake changes nothing, and a file that is
//! gone gives its value to nobody.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use toolcrib_base::file_version::FileVersion;
use toolcrib_base::render;

/// File with the value that was last read. Copies share it.
pub(super) struct RereadFile<T>(Arc<Reader<T>>);

/// Reader of a file.
struct Reader<T> {
    path: PathBuf,
    /// Content of the file, for messages.
    content: &'static str,
    read: Box<Read<T>>,
    state: Mutex<State<T>>,
    /// Held while the file is read again, so that requests at once cause one reading.
    turn: Arc<AsyncMutex<()>>,
}

/// Reads a file; it gets the value from before too.
type Read<T> = dyn Fn(&Path, &T) -> anyhow::Result<T> + Send + Sync;

struct State<T> {
    value: Arc<T>,
    /// File with this value.
    read: FileState,
    /// File that could not be used.
    refused: Option<FileState>,
}

/// State of a file without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Version(FileVersion),
    Missing,
    /// Nothing is known, such as in a folder that cannot be read.
    Unknown,
}

impl<T: Default + Send + Sync + 'static> RereadFile<T> {
    /// Reads the file. `content` names its content in messages. The default value admits nobody.
    ///
    /// # Errors
    ///
    /// The error of reading it.
    pub(super) fn open(
        path: &Path,
        content: &'static str,
        read: impl Fn(&Path, &T) -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let found = FileState::of(path);
        let value = Arc::new(read(path, &T::default())?);
        let state = Mutex::new(State { value, read: found, refused: None });
        let (path, read, turn) = (path.to_path_buf(), Box::new(read), Arc::default());
        Ok(Self(Arc::new(Reader { path, content, read, state, turn })))
    }

    /// Returns the value of the file as it is now, or the one from before if it cannot be used.
    pub(super) async fn present(&self) -> Arc<T> {
        let reader = self.0.clone();
        if self.0.is_changed_now().await {
            let turn = self.0.turn.clone().lock_owned().await;
            let read = move || {
                // The next reading begins after this one, also if its request is gone.
                let _turn = turn;
                reader.read_again();
            };
            // A panic leaves the value as it was.
            let _ = tokio::task::spawn_blocking(read).await;
        }
        self.last()
    }

    /// Returns the value that was last read, without a look at the file.
    pub(super) fn last(&self) -> Arc<T> {
        self.0.state().value.clone()
    }
}

impl<T: Default + Send + Sync + 'static> Reader<T> {
    /// Returns `true` if the file is neither the one that was read nor one that could not be used.
    async fn is_changed_now(self: &Arc<Self>) -> bool {
        let reader = self.clone();
        let look = move || reader.is_changed(FileState::of(&reader.path));
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }

    fn is_changed(&self, found: FileState) -> bool {
        let state = self.state();
        state.read != found && state.refused != Some(found)
    }

    /// Reads the file again if it has changed. This blocks.
    fn read_again(&self) {
        let found = FileState::of(&self.path);
        if !self.is_changed(found) {
            return;
        }
        let (path, content) = (self.path.display(), self.content);
        if found == FileState::Missing {
            *self.state() = State { value: Arc::default(), read: found, refused: None };
            render::warning(&format!("`{path}` is missing: the {content} admit no one until the file exists again"));
            return;
        }
        let before = self.state().value.clone();
        match (self.read)(&self.path, &before) {
            Ok(value) => {
                *self.state() = State { value: Arc::new(value), read: found, refused: None };
                render::aside(&format!("the {content} were read again"));
            }
            Err(error) => {
                let effect = {
                    let mut state = self.state();
                    state.refused = Some(found);
                    if state.read == FileState::Missing { "admit no one" } else { "from before apply" }
                };
                let error = render::message(&error);
                render::warning(&format!("{error}; the {content} {effect}"));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    fn of(path: &Path) -> Self {
        match path.metadata() {
            Ok(about) => Self::Version(FileVersion::of(&about)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Self::Missing,
            Err(_) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_read_once_a_mistake_changes_nothing_and_a_missing_file_has_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "7").unwrap();
        let readings = Arc::new(AtomicUsize::new(0));
        let count = readings.clone();
        let read = move |path: &Path, _: &u32| {
            count.fetch_add(1, SeqCst);
            Ok(fs::read_to_string(path)?.parse::<u32>()?)
        };
        let file = RereadFile::open(&path, "numbers", read).unwrap();
        for (text, value, expected_readings) in [
            (Some("7"), 7, 1),
            (Some("10"), 10, 1),
            (Some("a mistake"), 10, 1),
            (None, 0, 0),
            (Some("oh"), 0, 1),
            (Some("8"), 8, 1),
        ] {
            readings.store(0, SeqCst);
            match text {
                // The first is the file as it was opened.
                Some("7") => readings.store(1, SeqCst),
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let found = join_all((0..20).map(|_| file.present())).await;
            assert!(found.iter().all(|found| **found == value), "{text:?}: {found:?}");
            assert_eq!((*file.last(), readings.load(SeqCst)), (value, expected_readings), "{text:?}");
        }
    }
}
