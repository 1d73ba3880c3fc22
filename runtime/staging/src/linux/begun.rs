//! Files of a commit that has begun: its steps, those that are done, and the record that notes it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcrib_private_files::options;

use super::commit::ASIDE;
use super::entry::About;
use super::history::Record;
use super::part::PART;
use super::plan::{Step, plan};
use super::stage::{Stage, random};
use crate::types::Conflict;

/// Steps of a commit that has begun.
pub(crate) const STEPS: &str = "steps";
/// One byte for each step that is done, or left out.
pub(crate) const DONE: &str = "done";
/// Entry that the present step has made.
pub(crate) const MADE: &str = "made";
/// Name of the record that notes a commit.
const RECORD: &str = "record";
/// Entries for which those of an undo stand.
const LIKES: &str = "likes";

/// Commit that has begun.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Prefix for entries that are not at their place yet.
    pub(crate) aside: String,
    pub(crate) steps: Vec<Step>,
}

impl Stage {
    /// Returns the record of a commit that goes on, or this one.
    pub(crate) fn record_of(&self, record: &Arc<Record>) -> Arc<Record> {
        let id = fs::read_to_string(self.path().join(RECORD)).ok();
        id.and_then(|id| record.history().go_on(&id).ok()).unwrap_or_else(|| record.clone())
    }

    /// Writes the record's name down, so that a commit that goes on adds to it; `false` as long as it has none.
    pub(crate) fn keep_record_name(&self, record: &Record) -> io::Result<bool> {
        record.id().map_or(Ok(false), |id| self.replace(RECORD, id.as_bytes()).map(|()| true))
    }

    /// Writes down for which entries those of an undo stand.
    pub(crate) fn set_likes(&self, likes: Vec<(String, About)>) -> io::Result<()> {
        self.replace(LIKES, &serde_json::to_vec(&likes)?)
    }

    /// Returns the entries for which those of an undo stand. Without them, an earlier change counts as changed since.
    pub(crate) fn likes(&self) -> HashMap<String, About> {
        let text = fs::read(self.path().join(LIKES)).unwrap_or_default();
        serde_json::from_slice::<Vec<(String, About)>>(&text).unwrap_or_default().into_iter().collect()
    }

    /// Writes a file of the stage whole.
    fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let unfinished = self.path().join(format!("{name}.unfinished"));
        let mut file = options().write(true).create(true).truncate(true).open(&unfinished)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(unfinished, self.path().join(name))?;
        File::open(self.path())?.sync_all()
    }

    /// Folder with the files for a commit that has begun, which may be a part's.
    pub(crate) fn commit_folder(&self) -> PathBuf {
        let part = self.path().join(PART);
        if part.join(STEPS).exists() { part } else { self.path().to_owned() }
    }

    /// Reads the steps of a commit that has begun.
    pub(crate) fn begun(&self) -> io::Result<Option<Begun>> {
        match options().read(true).open(self.commit_folder().join(STEPS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => {
                let mut text = Vec::new();
                file?.read_to_end(&mut text)?;
                Ok(Some(serde_json::from_slice(&text)?))
            }
        }
    }

    /// Plans the steps, and writes them down before the first one.
    pub(crate) fn begin(&self) -> io::Result<Begun> {
        let state = self.state();
        // No tool and no other commit can have such a name.
        let aside = format!("{ASIDE}{}-", random()?);
        let begun = Begun { steps: plan(&state, &aside)?, aside };
        state.journal.sync()?;
        for name in [DONE, MADE] {
            match fs::remove_file(self.path().join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.replace(STEPS, &serde_json::to_vec(&begun)?)?;
        Ok(begun)
    }
}

/// Returns the byte for a step that was left out because of a conflict.
pub(crate) fn end_of(conflict: Conflict) -> u8 {
    match conflict {
        Conflict::Changed => b'c',
        Conflict::Gone => b'g',
        Conflict::Occupied => b'o',
        Conflict::NotEmpty => b'n',
    }
}

/// Returns the conflict of a step that was left out; `None` for one that is done.
pub(crate) fn conflict_of(end: u8) -> Option<Conflict> {
    let all = [Conflict::Changed, Conflict::Gone, Conflict::Occupied, Conflict::NotEmpty];
    all.into_iter().find(|conflict| end_of(*conflict) == end)
}
