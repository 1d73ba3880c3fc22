//! Takes back what the calls of a chat have changed in files, while the chat goes on.

use std::io::{self, IsTerminal};
use std::ops::Range;

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::staging::{History, Recorded, Undo};
use toolcrib_agent::chat::{FileChanges, TakenBack};
use toolcrib_base::render;
use toolcrib_settings::differences::counts;
use toolcrib_sources::options::{history, stages};

use super::{Planned, agrees, commit, explained, sweep, warn_about_refused};

/// File changes that this process has made in a chat.
pub(crate) struct ChatFiles {
    history: History,
    /// Identifier of the kept run.
    run: String,
    /// Number of its calls in earlier processes.
    earlier: usize,
}

impl ChatFiles {
    /// Finds the file changes of a chat; `None` if no changes are noted here.
    ///
    /// # Errors
    ///
    /// A mistake in the settings.
    pub(crate) fn of(run: &str) -> anyhow::Result<Option<Self>> {
        let Some(history) = history()?.filter(|_| cfg!(target_os = "linux")) else { return Ok(None) };
        let files = Self { history, run: run.to_owned(), earlier: 0 };
        // A history that cannot be read now is reported by `/undo`.
        let earlier = files.calls().map_or(0, |calls| calls.len());
        Ok(Some(Self { earlier, ..files }))
    }

    /// Lists the calls of the run that have changed files, the first one first, with `true` for those that were taken back.
    fn calls(&self) -> anyhow::Result<Vec<(Recorded, bool)>> {
        let records = self.history.records().map_err(|error| explained(&self.history, error))?;
        let of_run = records.iter().filter(|record| record.header.run.as_deref() == Some(self.run.as_str()));
        let calls = of_run.flat_map(|record| {
            record.calls.iter().map(|call| {
                let is_undone = record.undone_by.is_some() || record.undone_calls.contains(&call.id);
                (Recorded { record: record.id.clone(), call: Some(call.id.clone()) }, is_undone)
            })
        });
        Ok(calls.collect())
    }

    async fn take(&self, calls: Range<usize>) -> anyhow::Result<TakenBack> {
        let of_process = self.calls()?.into_iter().skip(self.earlier);
        let chosen = of_process.skip(calls.start).take(calls.len()).filter(|(_, is_undone)| !is_undone);
        let chosen: Vec<Recorded> = chosen.map(|(call, _)| call).collect();
        if chosen.is_empty() {
            return Ok(TakenBack::Nothing);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(TakenBack::Unasked);
        }
        let stages = stages()?;
        let _lock = self.history.lock_undo().map_err(|error| explained(&self.history, error))?;
        sweep(&self.history, &stages)?;
        let undo = self.history.undo(&chosen, &stages, false).map_err(|error| explained(&self.history, error))?;
        let Undo { stage, refused } = undo;
        let planned = Planned(stage.clone());
        warn_about_refused(&refused);
        let changes = stage.changes()?;
        if changes.is_empty() {
            return Ok(if refused.is_empty() { TakenBack::Nothing } else { TakenBack::Part });
        }
        if !agrees(&stage, &changes).await? {
            render::aside(&format!("files stay: {}", counts(&changes)));
            return Ok(TakenBack::Declined);
        }
        let calls = chosen.len();
        commit(&self.history, planned, &changes, chosen)?;
        Ok(if refused.is_empty() { TakenBack::All(calls) } else { TakenBack::Part })
    }
}

impl FileChanges for ChatFiles {
    fn count(&self) -> anyhow::Result<usize> {
        Ok(self.calls()?.len().saturating_sub(self.earlier))
    }

    fn take_back(&self, calls: Range<usize>) -> BoxFuture<'_, anyhow::Result<TakenBack>> {
        self.take(calls).boxed()
    }
}
