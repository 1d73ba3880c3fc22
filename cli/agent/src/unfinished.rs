//! Text of an answer while it arrives, also for the kept run: what was shown is not lost when the answer breaks off.

use super::event::Event;
use super::keeper::Keeper;

/// Text of the current answer so far.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedAnswer {
    text: String,
    /// `true` after the request is repeated, until text of the new answer replaces the earlier one.
    is_repeated: bool,
    /// Keeper of the run, which gets the text too.
    keeper: Option<Keeper>,
}

impl UnfinishedAnswer {
    /// Sets the keeper of the run.
    pub(crate) fn kept(keeper: Option<Keeper>) -> Self {
        Self { keeper, ..Self::default() }
    }

    /// Returns the keeper of the run.
    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// Begins the next answer.
    pub(crate) fn begin(&mut self) {
        self.text.clear();
        self.is_repeated = false;
    }

    /// Follows the events of the answer.
    pub(crate) fn follow(&mut self, event: &Event<'_>) -> anyhow::Result<()> {
        match event {
            Event::Text { delta, .. } => {
                // The earlier text stays until there is another: all further attempts may fail.
                if std::mem::take(&mut self.is_repeated) {
                    self.text.clear();
                    self.keeper.as_ref().map_or(Ok(()), Keeper::void_text)?;
                }
                self.text += delta;
                self.keeper.iter().for_each(|keeper| keeper.text(delta));
            }
            Event::Retry { .. } => self.is_repeated = true,
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if text of the answer that arrives was reported.
    pub(crate) fn has_text(&self) -> bool {
        !self.is_repeated && is_text(&self.text)
    }

    /// Ends the answer; returns its text if there is any.
    pub(crate) fn end(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.text)).filter(|text| is_text(text))
    }
}

/// Returns `false` for white space alone: no conversation goes on from it.
fn is_text(text: &str) -> bool {
    !text.trim().is_empty()
}
