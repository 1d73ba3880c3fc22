//! The state of a stage at one time: whoever compares two of them knows if something was written in between.

use std::io;

use super::entry::About;
use super::stage::Stage;
use crate::types::StageMark;

impl Stage {
    /// Returns the present state.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn mark(&self) -> io::Result<StageMark> {
        let state = self.state();
        let mut contents = Vec::new();
        for entry in state.contents.entries()? {
            let entry = entry?;
            let about = About::of(&entry.metadata()?);
            contents.push((entry.file_name().to_string_lossy().into_owned(), about.size, about.changed));
        }
        contents.sort();
        Ok(StageMark { journal: state.journal.len(), contents })
    }
}
