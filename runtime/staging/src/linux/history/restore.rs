//! Restoring of kept entries in a stage, without the limits that a tool has.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{Timestamps, futimens};
use rustix::io::Errno;

use super::line::{Kept, KeptContent};
use crate::linux::commit::timespec;
use crate::linux::edit::{Open, Opened};
use crate::linux::entry::About;
use crate::linux::fact::{Content, Node, NodeId};
use crate::linux::folder::FolderId;
use crate::linux::rules::Rules;
use crate::linux::state::State;
use crate::types::{EntryKind, StagedCall};

/// Rules of the user, who may change everything in these folders.
#[derive(Debug, Default)]
pub(super) struct Free(pub(super) Vec<FolderId>);

impl Rules for Free {
    fn entry(&self, _: Option<&About>, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn request(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn file(&self, _: &About, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn placed(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn moved(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn count(&self) -> io::Result<()> {
        Ok(())
    }

    fn is_link_out(&self, _: &str, _: usize) -> bool {
        false
    }

    fn roots(&self) -> &[FolderId] {
        &self.0
    }

    fn allows_aside(&self) -> bool {
        true
    }

    fn call(&self) -> Option<&Arc<StagedCall>> {
        None
    }

    fn until(&self) -> Option<Instant> {
        None
    }
}

impl State {
    /// Gives a file its kept content and time again.
    pub(super) fn restore_content(
        &mut self,
        at: (NodeId, &str),
        before: &Kept,
        kept: &mut File,
        rules: &Free,
    ) -> io::Result<()> {
        let how = Open { truncate: true, write: true, ..Open::default() };
        let Opened::Written(mut file) = self.open(at.0, at.1, how, rules)? else { return Err(Errno::ISDIR.into()) };
        fill(&mut file, before, kept)
    }

    /// Makes a kept entry again at its place, which must be free.
    pub(super) fn restore(&mut self, at: (NodeId, &str), before: &Kept, kept: Option<&mut File>) -> io::Result<()> {
        let place = self.place(at.0, at.1)?;
        if place.found.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.check_folder(place.folder)?;
        let content = match (&before.content, kept) {
            (KeptContent::Folder, _) => Content::Folder,
            (KeptContent::Link(target), _) => Content::Link(target.clone()),
            (KeptContent::File(_), Some(kept)) => {
                let (id, _) = self.new_node(&place, Content::Written(None));
                fill(&mut self.create_content(id)?, before, kept)?;
                Content::Written(None)
            }
            _ => return Err(Errno::NOENT.into()),
        };
        let (id, node) = self.new_node(&place, content);
        let mode = (before.about.kind != EntryKind::Link).then_some(before.about.mode);
        self.place_node(&place, id, Node { mode, ..node }, Vec::new())
    }
}

/// Fills a file of the stage with a kept content.
fn fill(file: &mut File, before: &Kept, kept: &mut File) -> io::Result<()> {
    io::copy(kept, file)?;
    let time = timespec(before.about.modified);
    Ok(futimens(&*file, &Timestamps { last_access: time, last_modification: time })?)
}
