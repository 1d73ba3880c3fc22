//! Selection of kept runs for a list: by a text in the conversation, the folder and the state.

use super::store::{RunStore, StoredRun};
use super::summary::RunSummary;

/// Selected runs; `None` selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunSelection<'a> {
    /// Text in prompts, answers, results, or names and arguments of calls.
    pub text: Option<&'a str>,
    /// Folder in which the run began.
    pub folder: Option<&'a str>,
    /// State in a word.
    pub state: Option<&'a str>,
}

impl RunSelection<'_> {
    /// Sums up a run; `None` if it is not selected. A search for a text needs the whole conversation, of one run at a time.
    ///
    /// # Errors
    ///
    /// The file of the run is damaged, or was removed meanwhile.
    pub fn summary(&self, store: &RunStore, stored: &StoredRun) -> anyhow::Result<Option<RunSummary>> {
        let summary = match self.text {
            None => Some(store.summary(&stored.id)?),
            Some(text) => {
                let run = store.read(&stored.id)?;
                run.contains(text).then(|| (&run).into())
            }
        };
        let is_selected = |run: &RunSummary| {
            self.folder.is_none_or(|folder| run.header.folder == folder)
                && self.state.is_none_or(|state| run.state.as_str() == state)
        };
        Ok(summary.filter(is_selected))
    }
}
