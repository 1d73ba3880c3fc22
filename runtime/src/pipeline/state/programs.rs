//! Sessions of programs in one conversation: a program sees the variables of the programs before it in its session.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

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
pub(crate) struct OpenSession<'s> {
    sessions: &'s ProgramSessions,
    name: String,
    /// State before the program.
    before: Option<SavedProgram>,
    slot: OwnedMutexGuard<Option<SavedProgram>>,
    file: Option<(ProgramStore, FileLock)>,
}

impl ProgramSessions {
    /// Keeps the sessions in a folder from now on; only the first folder is used.
    pub(crate) fn keep_in(&self, store: ProgramStore) {
        let _ = self.store.set(store);
    }

    /// Opens a session, once the program that uses it has ended: at most after `max_wait`.
    ///
    /// # Errors
    ///
    /// [`Outcome::Busy`] if programs or another process use too many sessions or this one, [`Outcome::Failed`] if its file cannot
    /// be read.
    pub(crate) async fn open(&self, name: &str, max_wait: Duration) -> Result<OpenSession<'_>, ToolError> {
        let busy = |why: &str| ToolError::new(Outcome::Busy, format!("the session `{name}` cannot be opened: {why}"));
        let slot = self.slot(name).ok_or_else(|| busy(&format!("programs use {MAX_SESSIONS} other sessions")))?;
        let slot = tokio::time::timeout(max_wait, slot.lock_owned()).await;
        let slot = slot.map_err(|_| busy("another program uses it"))?;
        let (before, file) = match self.store.get() {
            None => (slot.clone(), None),
            Some(store) => {
                let (store, wanted) = (store.clone(), name.to_owned());
                let open = move || {
                    let lock = store.lock(&wanted)?;
                    Ok((store.load(&wanted)?, Some((store, lock))))
                };
                let opened: Result<io::Result<_>, _> = tokio::task::spawn_blocking(open).await;
                opened.map_err(|error| busy(&error.to_string()))?.map_err(|error| match error.kind() {
                    ErrorKind::WouldBlock => busy("another process uses it"),
                    _ => ToolError { outcome: Outcome::Failed, ..busy(&error.to_string()) },
                })?
            }
        };
        Ok(OpenSession { sessions: self, name: name.to_owned(), before, slot, file })
    }

    /// Returns the slot of a session; `None` if programs use too many others. Slots without a state that no program uses go.
    fn slot(&self, name: &str) -> Option<Slot> {
        let mut slots = self.slots();
        slots.retain(|(_, slot)| is_used(slot) || slot.try_lock().is_ok_and(|state| state.is_some()));
        if let Some(at) = slots.iter().position(|(known, _)| known == name) {
            let used = slots.remove(at);
            let slot = used.1.clone();
            slots.push(used);
            return Some(slot);
        }
        if slots.iter().filter(|(_, slot)| is_used(slot)).count() >= MAX_SESSIONS {
            return None;
        }
        let slot = Slot::default();
        slots.push((name.to_owned(), slot.clone()));
        Some(slot)
    }

    /// Ends the sessions that were not used for the longest time while there are too many. Returns their names.
    fn end_others(&self) -> Vec<String> {
        let mut slots = self.slots();
        let mut ended = Vec::new();
        while slots.len() > MAX_SESSIONS
            && let Some(idle) = slots.iter().position(|(_, slot)| !is_used(slot))
        {
            ended.push(slots.remove(idle).0);
        }
        ended
    }

    fn slots(&self) -> MutexGuard<'_, Vec<(String, Slot)>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if a program uses a session, and so has a second reference to its slot.
fn is_used(slot: &Slot) -> bool {
    Arc::strong_count(slot) > 1
}

impl OpenSession<'_> {
    /// Returns the name of the session.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the state before the program; `None` for a new session.
    pub(crate) fn before(&self) -> Option<&SavedProgram> {
        self.before.as_ref()
    }

    /// Saves the state after the program, and returns the names of the sessions that ended for it.
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
            return Ok(self.sessions.end_others());
        };
        let name = self.name;
        let saved = tokio::task::spawn_blocking(move || store.save(&lock, &name, &saved)).await;
        saved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(60);

    fn saved(state: usize) -> SavedProgram {
        SavedProgram { language: "python".to_owned(), interpreter: String::new(), state: vec![0; state].into() }
    }

    #[tokio::test]
    async fn the_session_that_was_not_used_for_longest_ends_for_one_too_many() {
        let sessions = ProgramSessions::default();
        for n in 0..MAX_SESSIONS {
            assert!(sessions.open(&n.to_string(), WAIT).await.unwrap().save(saved(n)).await.unwrap().is_empty());
        }
        assert_eq!(sessions.open("0", WAIT).await.unwrap().before(), Some(&saved(0)));
        drop(sessions.open("unsaved", WAIT).await.unwrap());
        assert_eq!(sessions.slots().len(), MAX_SESSIONS + 1, "a program without a state ends no session");
        assert_eq!(sessions.open("more", WAIT).await.unwrap().save(saved(1)).await.unwrap(), ["1"]);
        assert!(sessions.open("1", WAIT).await.unwrap().before().is_none());
    }

    #[tokio::test]
    async fn a_session_beyond_its_size_keeps_the_state_before() {
        let sessions = ProgramSessions::default();
        sessions.open("a", WAIT).await.unwrap().save(saved(1)).await.unwrap();
        let error = sessions.open("a", WAIT).await.unwrap().save(saved(MAX_SESSION_BYTES + 1)).await.unwrap_err();
        assert!(error.contains("8388609"), "{error}");
        assert_eq!(sessions.open("a", WAIT).await.unwrap().before(), Some(&saved(1)));
    }

    #[tokio::test]
    async fn more_sessions_than_allowed_cannot_be_in_use() {
        let sessions = ProgramSessions::default();
        let mut used = Vec::new();
        for n in 0..MAX_SESSIONS {
            used.push(sessions.open(&n.to_string(), WAIT).await.unwrap());
        }
        assert_eq!(sessions.open("more", WAIT).await.err().map(|error| error.outcome), Some(Outcome::Busy));
        drop(used);
        assert!(sessions.open("more", WAIT).await.is_ok());
    }

    #[tokio::test]
    async fn a_session_in_a_folder_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = || {
            let sessions = ProgramSessions::default();
            sessions.keep_in(ProgramStore::folder(folder.path().join("programs")));
            sessions
        };
        sessions().open("a", WAIT).await.unwrap().save(saved(3)).await.unwrap();
        let again = sessions();
        let open = again.open("a", WAIT).await.unwrap();
        assert_eq!(open.before(), Some(&saved(3)));
        let other = sessions().open("a", WAIT).await.err().unwrap();
        assert_eq!(
            (other.outcome, other.message.contains("another process")),
            (Outcome::Busy, true),
            "{}",
            other.message
        );
        let same = again.open("a", Duration::ZERO).await.err().unwrap();
        assert_eq!((same.outcome, same.message.contains("another program")), (Outcome::Busy, true), "{}", same.message);
    }
}
