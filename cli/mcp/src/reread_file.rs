//! Value of a file that the host names, read again when the file changes. A file with a mistake changes nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_base::file_version::FileVersion;
use toolcrib_base::render;

/// File with the value that was last read.
#[derive(Debug)]
pub(super) struct RereadFile<T> {
    path: PathBuf,
    /// Content of the file, for messages.
    content: &'static str,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    value: Arc<T>,
    /// Version of the file with this value.
    read: Option<FileVersion>,
    /// Version that could not be used; that of a missing file is `None` too.
    refused: Option<Option<FileVersion>>,
}

impl<T> RereadFile<T> {
    /// Reads the file. `content` names its content in messages.
    ///
    /// # Errors
    ///
    /// The error of reading it.
    pub(super) fn open(
        path: &Path,
        content: &'static str,
        read: impl FnOnce(&Path) -> anyhow::Result<T>,
    ) -> anyhow::Result<Self> {
        let version = version(path);
        let state = Mutex::new(State { value: Arc::new(read(path)?), read: version, refused: None });
        Ok(Self { path: path.to_path_buf(), content, state })
    }

    /// Returns the value of the present file, or the one from before if it cannot be used. `read` gets that one too.
    pub(super) fn present(&self, read: impl FnOnce(&Path, &T) -> anyhow::Result<T>) -> Arc<T> {
        let found = version(&self.path);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read != found && state.refused != Some(found) {
            match read(&self.path, &state.value) {
                Ok(value) => {
                    *state = State { value: Arc::new(value), read: found, refused: None };
                    render::aside(&format!("the {} were read again", self.content));
                }
                Err(error) => {
                    state.refused = Some(found);
                    let error = render::message(&error);
                    render::warning(&format!("{error}; the {} from before apply", self.content));
                }
            }
        }
        state.value.clone()
    }
}

fn version(path: &Path) -> Option<FileVersion> {
    path.metadata().ok().map(|about| FileVersion::of(&about))
}
