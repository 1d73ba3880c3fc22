//! Sessions of programs in one conversation: a program sees the variables of the programs before it in its session.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::error::{Outcome, ToolError};
use crate::store::owner_only::FileLock;
use crate::store::programs::{MAX_SESSION_BYTES, MAX_SESSIONS, ProgramStore, SavedProgram};

/// State of one session in memory; `None` before its first program has ended, and if it is in a file.
type Slot = Arc<tokio::sync::Mutex<Option<SavedProgram>>>;

/// Sessions of programs in one conversation.
#[derive(Debug, Default)]
pub(crate) struct ProgramSessions {
    /// Sessions in the order of their last use.
    slots: Mutex<Vec<(String, Slot)>>,
    /// Folder of the sessions, if they outlive the process.
    store: OnceLock<ProgramStore>,
}

/// Session that one program uses.
pub(crate) struct OpenSession {
    name: String,
    /// State before the program.
    before: Option<SavedProgram>,
    slot: OwnedMutexGuard<Option<SavedProgram>>,
    file: Option<(ProgramStore, FileLock)>,
    /// Names of the sessions that ended for this one.
    pub(crate) ended: Vec<String>,
}

impl ProgramSessions {
    /// Keeps the sessions in a folder from now on; only the first folder is used.
    pub(crate) fn keep_in(&self, store: ProgramStore) {
        let _ = self.store.set(store);
    }

    /// Opens a session, once the program that uses it has ended.
    ///
    /// # Errors
    ///
    /// [`Outcome::Busy`] if programs or another process use too many sessions or this one, [`Outcome::Failed`] if its file cannot
    /// be read.
    pub(crate) async fn open(&self, name: &str) -> Result<OpenSession, ToolError> {
        let (slot, ended) = self.slot(name)?;
        let slot = slot.lock_owned().await;
        let (before, file) = match self.store.get() {
            None => (slot.clone(), None),
            Some(store) => {
                let (store, wanted) = (store.clone(), name.to_owned());
                let open = move || {
                    let lock = store.lock(&wanted)?;
                    Ok((store.load(&wanted)?, Some((store, lock))))
                };
                let opened: Result<std::io::Result<_>, _> = tokio::task::spawn_blocking(open).await;
                let fault = |error: String| {
                    ToolError::new(Outcome::Failed, format!("the session `{name}` cannot be opened: {error}"))
                };
                opened.map_err(|error| fault(error.to_string()))?.map_err(|error| fault(error.to_string()))?
            }
        };
        Ok(OpenSession { name: name.to_owned(), before, slot, file, ended })
    }

    /// Returns the slot of a session, and the sessions that ended for it.
    fn slot(&self, name: &str) -> Result<(Slot, Vec<String>), ToolError> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = slots.iter().position(|(known, _)| known == name) {
            let used = slots.remove(at);
            let slot = used.1.clone();
            slots.push(used);
            return Ok((slot, Vec::new()));
        }
        let mut ended = Vec::new();
        if slots.len() >= MAX_SESSIONS {
            // A session that a program uses has a second reference to its slot.
            let idle = slots.iter().position(|(_, slot)| Arc::strong_count(slot) == 1);
            let busy = || ToolError::new(Outcome::Busy, format!("programs use {MAX_SESSIONS} other sessions"));
            let (removed, _) = slots.remove(idle.ok_or_else(busy)?);
            // The file of a session remains.
            ended.extend(self.store.get().is_none().then_some(removed));
        }
        let slot = Slot::default();
        slots.push((name.to_owned(), slot.clone()));
        Ok((slot, ended))
    }
}

impl OpenSession {
    /// Returns the name of the session.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the state before the program; `None` for a new session.
    pub(crate) fn before(&self) -> Option<&SavedProgram> {
        self.before.as_ref()
    }

    /// Saves the state after the program.
    ///
    /// # Errors
    ///
    /// The reason why the state was not saved; the one before remains.
    pub(crate) async fn save(mut self, saved: SavedProgram) -> Result<Vec<String>, String> {
        let bytes = saved.state.len();
        if bytes > MAX_SESSION_BYTES {
            return Err(format!("its variables take {bytes} bytes, more than the {MAX_SESSION_BYTES} allowed"));
        }
        let Some((store, lock)) = self.file else {
            *self.slot = Some(saved);
            return Ok(self.ended);
        };
        let name = self.name;
        let saved = tokio::task::spawn_blocking(move || store.save(&lock, &name, &saved)).await;
        let mut ended = saved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        ended.append(&mut self.ended);
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(state: usize) -> SavedProgram {
        SavedProgram { language: "python".to_owned(), interpreter: String::new(), state: vec![0; state].into() }
    }

    #[tokio::test]
    async fn the_session_that_was_not_used_for_longest_ends_for_one_too_many() {
        let sessions = ProgramSessions::default();
        for n in 0..MAX_SESSIONS {
            assert!(sessions.open(&n.to_string()).await.unwrap().save(saved(n)).await.unwrap().is_empty());
        }
        assert_eq!(sessions.open("0").await.unwrap().before(), Some(&saved(0)));
        assert_eq!(sessions.open("more").await.unwrap().save(saved(1)).await.unwrap(), ["1"]);
        assert!(sessions.open("1").await.unwrap().before().is_none());
    }

    #[tokio::test]
    async fn a_session_beyond_its_size_keeps_the_state_before() {
        let sessions = ProgramSessions::default();
        sessions.open("a").await.unwrap().save(saved(1)).await.unwrap();
        let error = sessions.open("a").await.unwrap().save(saved(MAX_SESSION_BYTES + 1)).await.unwrap_err();
        assert!(error.contains("8388609"), "{error}");
        assert_eq!(sessions.open("a").await.unwrap().before(), Some(&saved(1)));
    }

    #[tokio::test]
    async fn more_sessions_than_allowed_cannot_be_in_use() {
        let sessions = ProgramSessions::default();
        let mut used = Vec::new();
        for n in 0..MAX_SESSIONS {
            used.push(sessions.open(&n.to_string()).await.unwrap());
        }
        assert_eq!(sessions.open("more").await.err().map(|error| error.outcome), Some(Outcome::Busy));
        drop(used);
        assert!(sessions.open("more").await.is_ok());
    }

    #[tokio::test]
    async fn a_session_in_a_folder_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = || {
            let sessions = ProgramSessions::default();
            sessions.keep_in(ProgramStore::folder(folder.path().join("programs")));
            sessions
        };
        sessions().open("a").await.unwrap().save(saved(3)).await.unwrap();
        let again = sessions();
        let open = again.open("a").await.unwrap();
        assert_eq!(open.before(), Some(&saved(3)));
        let other = sessions().open("a").await.err().unwrap();
        assert!(other.message.contains("the session `a` cannot be opened"), "{}", other.message);
    }
}
