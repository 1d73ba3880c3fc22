//! The plan of an undo: changes are taken back in a stage, the last one first. A path that has another state than
//! the calls left is refused, and with it every earlier change there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use rustix::io::Errno;
use toolcrib_private_files::options;

use super::line::{Action, Kept, KeptContent, Line, Noted};
use super::restore::Free;
use super::store::{CONTENTS, History};
use crate::linux::base::{below, join, split};
use crate::linux::entry::About;
use crate::linux::folder::StagedFolder;
use crate::linux::stage::{Stage, random};
use crate::linux::stages::Stages;
use crate::types::{EntryKind, Limits, Recorded, Refused, StagedCall};

/// Prefix for the stages of undos.
const PREFIX: &str = "undo-";
const CHANGED: &str = "it has changed since";
const GONE: &str = "it is gone, or was moved since";
const OCCUPIED: &str = "another entry is at its place";
const OUTSIDE: &str = "its folder is gone, or is another one by now";
const NAMES: &str = "it had other names, and they keep the new content";
const NO_FOLDER: &str = "its folder is gone, or was moved since";
const NOT_EMPTY: &str = "it contains entries that stay";
const SHARED: &str = "other calls of the same commit have changed it too";
const CUT_OFF: &str = "its call was killed or has not ended, and nothing shows in which state it leaves it";

/// Undo that is ready to be committed. Its stage stays on the disk until it is committed or removed.
#[derive(Debug)]
pub struct Undo {
    /// Stage with the changes that take back those of the calls.
    pub stage: Arc<Stage>,
    /// Paths that stay as they are, each with the reason.
    pub refused: Vec<Refused>,
}

impl History {
    /// Plans the undo of records and calls, in a new stage. With `unverified`, the present state of a path counts as that in which a
    /// killed call left it.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn undo(&self, chosen: &[Recorded], stages: &Stages, unverified: bool) -> io::Result<Undo> {
        let (mut records, mut likes) = (Vec::new(), HashMap::new());
        for id in self.ids()? {
            let of_record = chosen.iter().filter(|one| one.record == id);
            let calls: Vec<Option<&str>> = of_record.map(|one| one.call.as_deref()).collect();
            let mut lines = Vec::new();
            let read = self.read(&id, |line| match line {
                Line::Like { now, then } => drop(likes.insert(key(&now), then)),
                line if !calls.is_empty() => lines.push(line),
                _ => {}
            });
            if !calls.is_empty() {
                // Of the others, one that cannot be read, or is gone by now, does not matter.
                read?;
                let calls = (!calls.contains(&None)).then(|| calls.into_iter().flatten().collect());
                records.push((self.folder_of(&id)?.join(CONTENTS), lines, calls));
            }
        }
        let stage = stages.open(&format!("{PREFIX}{}", random()?), Limits::default())?;
        let mut plan = Plan {
            stage,
            folders: Vec::new(),
            rules: Free::default(),
            likes,
            restored: BTreeMap::new(),
            refused: BTreeMap::new(),
            made: HashSet::new(),
            others: HashSet::new(),
            unverified,
        };
        for (contents, lines, calls) in records.iter().rev() {
            plan.take_back(contents, lines, calls.as_ref())?;
        }
        // A file that the calls made in between, and that is gone, is nobody's loss.
        let is_loss = |path: &str| !plan.made.contains(path) || !matches!(plan.now(path), Ok(None));
        let listed = plan.refused.iter().filter(|(path, (_, is_listed))| *is_listed && is_loss(path));
        let refused = listed.map(|(path, (reason, _))| Refused { path: path.into(), reason }).collect();
        let Plan { stage, folders, restored, .. } = plan;
        drop(folders);
        stage.set_likes(restored.into_iter().filter_map(|(path, about)| Some((path, about?))).collect())?;
        Ok(Undo { stage, refused })
    }

    /// Removes the stages of undos that were planned and not begun. Returns the name of one that was interrupted.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn sweep(&self, stages: &Stages) -> io::Result<Option<String>> {
        let is_undo = |name: &&String| name.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == 16);
        let mut interrupted = None;
        for name in stages.names()?.iter().filter(is_undo) {
            match stages.take(name) {
                Ok(stage) if stage.is_committing() => interrupted = Some(name.clone()),
                Ok(stage) => stage.remove()?,
                // Another process has it open.
                Err(_) => {}
            }
        }
        Ok(interrupted)
    }
}

struct Plan {
    stage: Arc<Stage>,
    folders: Vec<(String, StagedFolder)>,
    rules: Free,
    /// Entries that earlier undos made, and those in whose places they are.
    likes: HashMap<Key, About>,
    /// Paths that this undo has restored, and the state that each of them stands for.
    restored: BTreeMap<String, Option<About>>,
    /// Refused paths, each with its reason, and `true` if it is listed.
    refused: BTreeMap<String, (&'static str, bool)>,
    /// Paths at which nothing was before the calls.
    made: HashSet<String>,
    /// Folders that others made where the calls had removed one.
    others: HashSet<String>,
    unverified: bool,
}

impl Plan {
    /// Takes back one record, or some of its calls.
    fn take_back(&mut self, contents: &Path, lines: &[Line], calls: Option<&HashSet<&str>>) -> io::Result<()> {
        let record = Read::new(lines);
        for (path, identity) in &record.bases {
            self.open_base(path, *identity)?;
        }
        let is_meant = |call: &usize| match (calls, record.calls.get(*call)) {
            (Some(calls), Some(call)) => calls.contains(call.id.as_str()),
            (calls, _) => calls.is_none(),
        };
        let is_chosen = |noted: &Noted| calls.is_none() || noted.calls.iter().any(is_meant);
        let all = |noted: &Noted| noted.calls.iter().all(is_meant);
        let chosen = record.changes.iter().filter(|(_, noted)| is_chosen(noted));
        let touched: HashSet<&str> = chosen.flat_map(|(_, noted)| noted.action.paths()).collect();
        let mut seen = HashSet::new();
        for (path, was_there) in record.changes.iter().flat_map(|(_, noted)| noted.action.touched()) {
            if seen.insert(path) && !was_there {
                self.made.insert(path.to_owned());
            }
        }
        let mut number = record.changes.len();
        for line in lines.iter().rev() {
            match line {
                // The state after other calls is not the one to compare with.
                Line::End { calls, .. } if !calls.is_empty() && !calls.iter().any(is_meant) => {}
                Line::End { paths, .. } | Line::Seen { paths } => {
                    for (path, left) in paths.iter().filter(|(path, _)| touched.contains(path.as_str())) {
                        self.check(path, left.as_ref());
                    }
                }
                Line::Change(noted) => {
                    number -= 1;
                    if !is_chosen(noted) || record.failed.contains(&number) {
                        continue;
                    }
                    let reason = match () {
                        () if !all(noted) => Some(SHARED),
                        () if !self.unverified && record.cut_off.contains(&number) => Some(CUT_OFF),
                        () => None,
                    };
                    let taken = match reason {
                        Some(reason) => Err(reason),
                        None => self.invert(contents, &noted.action),
                    };
                    if let Err(reason) = taken {
                        self.refuse_action(&noted.action, reason);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts a folder under the stage, if it is still the one in which the calls could write.
    fn open_base(&mut self, path: &str, identity: (u64, u64)) -> io::Result<()> {
        if self.folders.iter().any(|(known, _)| known == path) {
            return Ok(());
        }
        let Ok(folder) = Dir::open_ambient_dir(path, ambient_authority()) else { return Ok(()) };
        let found = folder.dir_metadata()?;
        if (found.dev(), found.ino()) == identity {
            let folder = self.stage.attach(path.as_ref(), folder.into_std_file(), None)?;
            self.rules.0.push(folder.id());
            self.folders.push((path.to_owned(), folder));
        }
        Ok(())
    }

    /// Finds the folder above a path, and the rest of the path.
    fn place<'p>(&self, path: &'p str) -> Result<(&StagedFolder, &'p str), &'static str> {
        let found = self.folders.iter().filter_map(|(base, folder)| Some((folder, below(base, path)?)));
        found.filter(|(_, rest)| !rest.is_empty()).min_by_key(|(_, rest)| rest.len()).ok_or(OUTSIDE)
    }

    /// Describes what is at a path by now, after the changes that are taken back.
    fn now(&self, path: &str) -> Result<Option<About>, &'static str> {
        let (folder, rest) = self.place(path)?;
        if !leads_through_folders(folder, rest) {
            return Ok(None);
        }
        match folder.about(rest, false) {
            Ok(about) => Ok(Some(about)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => Ok(None),
                _ => Err("it cannot be read"),
            },
        }
    }

    /// Refuses a path whose state is not the one in which the calls left it.
    fn check(&mut self, path: &str, left: Option<&About>) {
        let now = match self.restored.get(path) {
            Some(stands_for) => Ok(*stands_for),
            None => self.now(path),
        };
        let reason = match (now, left) {
            (Err(reason), _) => Some(reason),
            (Ok(None), None) => None,
            (Ok(None), Some(_)) => Some(GONE),
            // A removed folder can be where others made one anew.
            (Ok(Some(now)), None) => (now.kind != EntryKind::Folder).then_some(OCCUPIED),
            (Ok(Some(now)), Some(left)) => (!self.is_left(now, left)).then_some(CHANGED),
        };
        if let Some(reason) = reason {
            self.refuse(path, reason, true);
        }
    }

    /// Returns `true` if an entry is the one that a call left, or one that undos put in its place.
    fn is_left(&self, mut now: About, left: &About) -> bool {
        for _ in 0..=self.likes.len() {
            // Each change of another name is one of the file's facts.
            let has_names = now.names > 1 || left.names > 1;
            let is_same_time = now.kind == EntryKind::Folder || has_names || now.changed == left.changed;
            if now.is_unchanged(left) && is_same_time {
                return true;
            }
            match self.likes.get(&key(&now)) {
                Some(then) => now = *then,
                None => return false,
            }
        }
        false
    }

    fn refuse(&mut self, path: &str, reason: &'static str, is_listed: bool) {
        if self.refusal(path).is_none() {
            self.refused.insert(path.to_owned(), (reason, is_listed));
        }
    }

    /// Refuses a change. Of a moved entry, the present path is listed.
    fn refuse_action(&mut self, action: &Action, reason: &'static str) {
        match action {
            Action::Moved { from, to, .. } => {
                self.refuse(to, reason, true);
                self.refuse(from, reason, false);
            }
            action => action.paths().for_each(|path| self.refuse(path, reason, true)),
        }
    }

    /// Returns the reason for which a path, or a folder above it, is refused.
    fn refusal(&self, path: &str) -> Option<&'static str> {
        let mut above = path;
        loop {
            match (self.refused.get(above), split(above)) {
                (Some((reason, _)), _) => return Some(reason),
                (None, ("/", _)) => return None,
                (None, (folder, _)) => above = folder,
            }
        }
    }

    /// Takes one change back.
    fn invert(&mut self, contents: &Path, action: &Action) -> Result<(), &'static str> {
        if let Some(reason) = action.paths().find_map(|path| self.refusal(path)) {
            return Err(reason);
        }
        match action {
            Action::Made { path } => {
                match self.now(path)?.map(|now| now.kind) {
                    None => {}
                    Some(_) if self.others.contains(path) => return Ok(()),
                    Some(EntryKind::Folder) => {
                        self.edit(path, |folder, rest| folder.remove_folder(rest, &self.rules))?
                    }
                    Some(_) => self.edit(path, |folder, rest| folder.remove_file(rest, &self.rules))?,
                }
                self.restored.insert(path.clone(), None);
            }
            Action::Written { path, before } => {
                let mut kept = kept(contents, before)?.ok_or(CHANGED)?;
                match self.now(path)? {
                    Some(now) if now.names < before.about.names => return Err(NAMES),
                    Some(now) if now.kind == EntryKind::File => {}
                    _ => return Err(CHANGED),
                }
                self.edit(path, |folder, rest| {
                    let mut state = folder.state(&self.rules)?;
                    state.restore_content((folder.node(), rest), before, &mut kept, &self.rules)
                })?;
                self.restored.insert(path.clone(), Some(before.about));
            }
            Action::Removed { path, before } => self.restore(contents, path, before)?,
            Action::Moved { from, to, about, over } => {
                // What cannot be restored leaves the moved entry where it is.
                over.as_ref().map(|over| kept(contents, over)).transpose()?;
                if self.now(to)?.is_none() {
                    return Err(GONE);
                }
                if self.now(from)?.is_some() {
                    return Err(OCCUPIED);
                }
                let ((source, old), (target, new)) = (self.place(to)?, self.place(from)?);
                if !leads_through_folders(target, new) {
                    return Err(NO_FOLDER);
                }
                source.rename(old, target, new, &self.rules).map_err(|error| explained(&error))?;
                self.move_restored(to, from);
                self.restored.insert(from.clone(), Some(*about));
                match over {
                    Some(over) => self.restore(contents, to, over)?,
                    None => drop(self.restored.insert(to.clone(), None)),
                }
            }
        }
        Ok(())
    }

    fn restore(&mut self, contents: &Path, path: &str, before: &Kept) -> Result<(), &'static str> {
        let mut kept = kept(contents, before)?;
        match self.now(path)? {
            None => {}
            Some(now) if now.kind == EntryKind::Folder && before.content == KeptContent::Folder => {
                self.others.insert(path.to_owned());
                return Ok(());
            }
            Some(_) => return Err(OCCUPIED),
        }
        self.edit(path, |folder, rest| {
            folder.state(&self.rules)?.restore((folder.node(), rest), before, kept.as_mut())
        })?;
        self.restored.insert(path.to_owned(), Some(before.about));
        Ok(())
    }

    fn edit(&self, path: &str, edit: impl FnOnce(&StagedFolder, &str) -> io::Result<()>) -> Result<(), &'static str> {
        let (folder, rest) = self.place(path)?;
        if !leads_through_folders(folder, rest) {
            return Err(NO_FOLDER);
        }
        edit(folder, rest).map_err(|error| explained(&error))
    }

    /// Moves the notes about restored paths with their folder. Those about an earlier folder at its new place no longer count.
    fn move_restored(&mut self, from: &str, to: &str) {
        self.restored.retain(|path, _| below(to, path).is_none());
        let inside = self.restored.keys().filter(|path| below(from, path).is_some()).cloned().collect::<Vec<_>>();
        for path in inside {
            if let Some(about) = self.restored.remove(&path) {
                let rest = below(from, &path).unwrap_or_default();
                let path = if rest.is_empty() { to.to_owned() } else { join(to, rest) };
                self.restored.insert(path, about);
            }
        }
    }
}

/// Facts of a record by their kinds.
struct Read<'l> {
    bases: Vec<(&'l str, (u64, u64))>,
    calls: Vec<&'l StagedCall>,
    changes: Vec<(usize, &'l Noted)>,
    failed: HashSet<usize>,
    /// Changes after which a process was killed before the calls had ended.
    cut_off: HashSet<usize>,
}

impl<'l> Read<'l> {
    fn new(lines: &'l [Line]) -> Self {
        let (mut bases, mut calls, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut failed, mut cut_off) = (HashSet::new(), HashMap::new());
        for line in lines {
            match line {
                Line::Base { path, device, inode } => bases.push((path.as_str(), (*device, *inode))),
                Line::Call(call) => calls.push(call),
                Line::Change(noted) => {
                    cut_off.insert(changes.len(), noted);
                    changes.push((changes.len(), noted));
                }
                Line::Failed(number) => drop(failed.insert(*number)),
                Line::End { calls, .. } => cut_off.retain(|_, noted| !noted.is_of(calls)),
                Line::Begun(_) | Line::Seen { .. } | Line::Like { .. } => {}
            }
        }
        Self { bases, calls, changes, failed, cut_off: cut_off.into_keys().collect() }
    }
}

/// Returns `true` if all of a path but its last name are folders: a record has no path through a link.
fn leads_through_folders(folder: &StagedFolder, path: &str) -> bool {
    let ends = path.char_indices().filter(|(_, character)| *character == '/').map(|(at, _)| at);
    ends.into_iter().all(|end| folder.about(&path[..end], false).is_ok_and(|found| found.kind == EntryKind::Folder))
}

/// Opens the content of a kept file; `None` for other entries.
fn kept(contents: &Path, before: &Kept) -> Result<Option<File>, &'static str> {
    match &before.content {
        KeptContent::Lost(loss) => Err(loss.explained()),
        KeptContent::File(number) => match options().read(true).open(contents.join(number.to_string())) {
            Ok(file) if file.metadata().is_ok_and(|found| found.len() == before.about.size) => Ok(Some(file)),
            Ok(_) => Err("its content before was not kept as a whole"),
            Err(_) => Err("its content before cannot be read"),
        },
        KeptContent::Folder | KeptContent::Link(_) => Ok(None),
    }
}

fn explained(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOTEMPTY) => NOT_EMPTY,
        Some(Errno::EXIST) => OCCUPIED,
        Some(Errno::NOENT | Errno::NOTDIR) => NO_FOLDER,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => "its folder may not be written",
        Some(Errno::DQUOT | Errno::NOSPC) => "there is no room for its content",
        _ => "the system refused it",
    }
}

/// Device, number, size and times of an entry.
type Key = (u64, u64, u64, i128, i128);

fn key(about: &About) -> Key {
    (about.device, about.inode, about.size, about.modified, about.changed)
}
