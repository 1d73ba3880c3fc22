//! The commit: it performs the steps of the plan, and each step leaves a file as it was or as it becomes. A commit that was
//! killed goes on where it was.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, fchmod, fchown, fstat, futimens, openat,
    renameat_with, utimensat,
};
use rustix::io::Errno;

use super::base::{Bases, split};
use super::changes::is_same_content;
use super::entry::About;
use super::fact::NodeId;
use super::plan::Step;
use super::state::copy_in_time;
use crate::types::{CommitError, Conflict, EntryKind};

/// Prefix for entries that are not at their place yet.
pub(crate) const ASIDE: &str = ".toolcrib-stage-";

/// Place of a step: its folder, open, and the name there.
struct Entry {
    folder: Dir,
    name: String,
}

impl Entry {
    /// Opens the folder of a path without following links.
    fn open(bases: &Bases, path: &str) -> io::Result<Self> {
        let (above, name) = split(path);
        let (base, rest) = bases.find(above)?;
        let names = rest.split('/').filter(|name| !matches!(*name, "" | "."));
        let folder = names.into_iter().try_fold(base.try_clone()?, |folder, name| folder.open_dir_nofollow(name))?;
        Ok(Self { folder, name: name.to_owned() })
    }

    /// Another entry of the same folder.
    fn beside(&self, name: &str) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, name: name.to_owned() })
    }

    fn about(&self) -> io::Result<Option<About>> {
        match self.folder.symlink_metadata(&self.name) {
            Ok(found) => Ok(Some(About::of(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is(&self, entry: &About) -> io::Result<bool> {
        Ok(self.about()?.is_some_and(|now| now.is_same_entry(entry)))
    }

    fn remove(&self) -> io::Result<()> {
        match self.folder.remove_file(&self.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Exchanges this entry with another.
    fn exchange(&self, other: &Self) -> Result<(), Errno> {
        renameat_with(&self.folder, self.name.as_str(), &other.folder, other.name.as_str(), RenameFlags::EXCHANGE)
    }

    /// Takes this name to another, which must be free.
    fn rename_to_free(&self, to: &Self) -> io::Result<()> {
        match renameat_with(&self.folder, self.name.as_str(), &to.folder, to.name.as_str(), RenameFlags::NOREPLACE) {
            // This file system cannot exclude an entry that appears in between.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match to.about()? {
                Some(_) => Err(Errno::EXIST.into()),
                None => self.folder.rename(&self.name, &to.folder, &to.name),
            },
            done => Ok(done?),
        }
    }

    /// Takes this name to another, whose entry it replaces if that is still the expected one; `false` if it is not.
    fn rename_over(&self, to: &Self, expected: &About) -> io::Result<bool> {
        if !to.about()?.is_some_and(|now| now.is_unchanged(expected)) {
            return Ok(false);
        }
        match self.exchange(to) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.folder.rename(&self.name, &to.folder, &to.name)?;
                return Ok(true);
            }
            done => done?,
        }
        // What was replaced is judged once nobody can put another entry there.
        if !self.about()?.is_some_and(|now| now.is_unchanged(expected)) {
            self.exchange(to)?;
            return Ok(false);
        }
        self.remove()?;
        Ok(true)
    }
}

/// Performs steps.
pub(crate) struct Performer<'a> {
    pub(crate) bases: &'a Bases,
    pub(crate) contents: &'a Dir,
    /// Name of a file before it is at its place.
    pub(crate) aside: &'a str,
    /// `true` for the first step after a kill, which may be done already, or half done.
    pub(crate) is_repeated: bool,
    /// File that names the entry which the present step has made.
    pub(crate) made: &'a File,
}

impl Performer<'_> {
    pub(crate) fn perform(&self, step: &Step) -> Result<(), CommitError> {
        let system = |error| CommitError::System(PathBuf::from(step.path()), error);
        match self.attempt(step).map_err(system)? {
            None => Ok(()),
            Some(conflict) => Err(CommitError::Conflict(PathBuf::from(step.path()), conflict)),
        }
    }

    fn attempt(&self, step: &Step) -> io::Result<Option<Conflict>> {
        let at = match Entry::open(self.bases, step.path()) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let is_removed = matches!(step, Step::Remove { .. }) && self.is_repeated;
                return Ok((!is_removed).then_some(Conflict::Gone));
            }
            at => at?,
        };
        match step {
            Step::Remove { about, .. } if about.kind == EntryKind::Folder => self.remove_folder(&at, about),
            Step::Remove { about, .. } => self.remove_file(&at, about),
            Step::MakeFolder { mode, .. } => {
                match at.folder.create_dir(&at.name) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        let is_made = self.is_repeated && at.about()?.is_some_and(|now| now.kind == EntryKind::Folder);
                        if !is_made {
                            return Ok(Some(Conflict::Occupied));
                        }
                    }
                    made => made?,
                }
                if let Some(mode) = mode {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    match openat(&at.folder, at.name.as_str(), flags, Mode::empty()) {
                        // It has these permissions already.
                        Err(Errno::ACCESS) if self.is_repeated => {}
                        made => fchmod(made?, Mode::from_raw_mode((mode & 0o777) as _))?,
                    }
                }
                Ok(None)
            }
            Step::Move { from, about, over, .. } => self.rename(from, &at, about, over.as_ref()),
            Step::MakeLink { target, over, .. } => {
                let new = at.beside(self.aside)?;
                if let Some(done) = self.finish(&new, &at, over.as_ref())? {
                    return Ok(done);
                }
                if self.is_repeated
                    && at.folder.read_link_contents(&at.name).is_ok_and(|now| now.as_os_str() == target.as_str())
                {
                    return Ok(None);
                }
                new.folder.symlink_contents(target, &new.name)?;
                put_made(&new, self.note(&new), &at, over.as_ref())
            }
            Step::Write { path, content, over, mode } => self.write(&at, path, (*content, *mode), over.as_ref()),
            Step::Name { same, over, .. } => {
                let (new, same) = (at.beside(self.aside)?, Entry::open(self.bases, same)?);
                if let Some(done) = self.finish(&new, &at, over.as_ref())? {
                    return Ok(done);
                }
                let Some(file) = same.about()? else { return Ok(Some(Conflict::Gone)) };
                if self.is_repeated && at.is(&file)? {
                    return Ok(None);
                }
                same.folder.hard_link(&same.name, &new.folder, &new.name)?;
                put_made(&new, self.note(&new), &at, over.as_ref())
            }
            Step::Date { modified, .. } => {
                let time = timespec(*modified);
                let times = Timestamps { last_access: time, last_modification: time };
                utimensat(&at.folder, at.name.as_str(), &times, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(None)
            }
        }
    }

    /// Notes the entry that the present step has made, so that after a kill nothing else is taken for it.
    fn note(&self, new: &Entry) -> io::Result<()> {
        let about = new.about()?.ok_or(Errno::NOENT)?;
        self.made.set_len(0)?;
        self.made.write_all_at(&serde_json::to_vec(&about.file())?, 0)
    }

    /// Removes what the present step has made and not put at its place.
    pub(crate) fn clean(&self, step: &Step) -> io::Result<()> {
        let new = Entry::open(self.bases, step.path())?.beside(self.aside)?;
        match new.about()? {
            Some(now) if self.has_made(&now) => new.remove(),
            _ => Ok(()),
        }
    }

    /// Returns `true` if the present step has made this entry before a kill.
    fn has_made(&self, entry: &About) -> bool {
        let mut text = Vec::new();
        let mut file = self.made;
        let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
        read.is_ok() && serde_json::from_slice::<(u64, u64)>(&text).is_ok_and(|made| made == entry.file())
    }

    /// Ends a replacement that a kill interrupted; `None` if the step is to be done from its begin.
    fn finish(&self, new: &Entry, at: &Entry, over: Option<&About>) -> io::Result<Option<Option<Conflict>>> {
        if !self.is_repeated {
            return Ok(None);
        }
        match new.about()? {
            None => Ok(None),
            Some(now) if self.has_made(&now) => new.remove().map(|()| None),
            // Both have changed their places, and what was replaced was not removed yet.
            Some(now) if over.is_some_and(|over| now.is_unchanged(over)) => new.remove().map(|()| Some(None)),
            // Others have replaced the target between the check and the exchange: theirs goes back.
            Some(_) if over.is_some() && at.about()?.is_some_and(|now| self.has_made(&now)) => {
                new.exchange(at)?;
                new.remove()?;
                Ok(Some(Some(Conflict::Changed)))
            }
            // It was made and not noted yet: nobody else can know its name.
            Some(_) => new.remove().map(|()| None),
        }
    }

    fn remove_folder(&self, at: &Entry, about: &About) -> io::Result<Option<Conflict>> {
        match at.about()? {
            None if self.is_repeated => return Ok(None),
            None => return Ok(Some(Conflict::Gone)),
            Some(now) if !now.is_same_entry(about) => return Ok(Some(Conflict::Changed)),
            Some(_) => {}
        }
        match at.folder.remove_dir(&at.name) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(Some(Conflict::NotEmpty)),
            removed => removed.map(|()| None),
        }
    }

    fn remove_file(&self, at: &Entry, about: &About) -> io::Result<Option<Conflict>> {
        let aside = at.beside(self.aside)?;
        if self.is_repeated && aside.about()?.is_some() && at.about()?.is_none() {
            aside.rename_to_free(at)?;
        }
        match at.about()? {
            None if self.is_repeated => return Ok(None),
            None => return Ok(Some(Conflict::Gone)),
            Some(now) if !now.is_unchanged(about) => return Ok(Some(Conflict::Changed)),
            Some(_) => {}
        }
        // Under another name, nobody can replace it between the check and its removal.
        at.rename_to_free(&aside)?;
        match aside.about()?.is_some_and(|now| now.is_unchanged(about)) {
            true => aside.remove().map(|()| None),
            false => aside.rename_to_free(at).map(|()| Some(Conflict::Changed)),
        }
    }

    fn rename(&self, from: &str, at: &Entry, about: &About, over: Option<&About>) -> io::Result<Option<Conflict>> {
        let from = match Entry::open(self.bases, from) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((!(self.is_repeated && at.is(about)?)).then_some(Conflict::Gone));
            }
            from => from?,
        };
        if self.is_repeated && at.is(about)? {
            // The entry is at its place; what it replaced may still be at its former one.
            return match (over, from.about()?) {
                (Some(over), Some(now)) if now.is_unchanged(over) => from.remove().map(|()| None),
                // Others have replaced it, between the check and the exchange.
                (Some(over), Some(now)) if now.is_same_entry(over) => {
                    from.exchange(at)?;
                    Ok(Some(Conflict::Changed))
                }
                _ => Ok(None),
            };
        }
        match from.about()? {
            None => Ok(Some(Conflict::Gone)),
            Some(now) if !now.is_unchanged(about) => Ok(Some(Conflict::Changed)),
            Some(_) => put(&from, at, over),
        }
    }

    fn write(
        &self,
        at: &Entry,
        path: &str,
        (content, mode): (NodeId, Option<u32>),
        over: Option<&About>,
    ) -> io::Result<Option<Conflict>> {
        let new = at.beside(self.aside)?;
        if let Some(done) = self.finish(&new, at, over)? {
            return Ok(done);
        }
        let open = || Ok::<_, io::Error>(self.contents.open(content.to_string())?.into_std());
        if self.is_repeated
            && at
                .about()?
                .is_some_and(|now| now.kind == EntryKind::File && over.is_none_or(|over| !now.is_same_entry(over)))
            && is_same_content(open()?, self.bases.read(path)?.0)?
        {
            return Ok(None);
        }
        // A file takes the rights of the file that it replaces, and none of a link.
        let rights = over.filter(|over| over.kind == EntryKind::File && mode.is_none());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if rights.is_some() || mode.is_some() {
            // Nobody else reads it before it has its rights.
            options.mode(0o600);
        }
        let mut file = match new.folder.open_with(&new.name, &options) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Some(Conflict::Occupied)),
            file => file?.into_std(),
        };
        let written = self.note(&new).and_then(|()| {
            let mut from = open()?;
            copy_in_time(&mut from, &mut file, u64::MAX, None)?;
            if let Some(over) = rights {
                // Only a privileged process can give a file away; another one keeps what it made.
                let _ = fchown(&file, Some(Uid::from_raw(over.owner.0)), Some(Gid::from_raw(over.owner.1)));
                // As after a write in place, nothing runs with the rights of its owner.
                fchmod(&file, Mode::from_raw_mode((over.mode & 0o777) as _))?;
            }
            if let Some(mode) = mode {
                fchmod(&file, Mode::from_raw_mode((mode & 0o777) as _))?;
            }
            let found = About::of_stat(&fstat(&from)?);
            let times =
                Timestamps { last_access: timespec(found.accessed), last_modification: timespec(found.modified) };
            futimens(&file, &times)?;
            file.sync_all()
        });
        put_made(&new, written, at, over)
    }
}

/// Takes an entry that a step has made to its place, or removes it again.
fn put_made(new: &Entry, made: io::Result<()>, at: &Entry, over: Option<&About>) -> io::Result<Option<Conflict>> {
    match made.and_then(|()| put(new, at, over)) {
        Ok(None) => Ok(None),
        failed => {
            new.remove()?;
            failed
        }
    }
}

/// Converts nanoseconds since 1970.
pub(crate) fn timespec(nanoseconds: i128) -> Timespec {
    Timespec {
        tv_sec: nanoseconds.div_euclid(1_000_000_000) as i64,
        tv_nsec: nanoseconds.rem_euclid(1_000_000_000) as _,
    }
}

/// Takes a finished entry to its place.
fn put(new: &Entry, at: &Entry, over: Option<&About>) -> io::Result<Option<Conflict>> {
    match over {
        Some(over) => new.rename_over(at, over).map(|is_done| (!is_done).then_some(Conflict::Changed)),
        None => match new.rename_to_free(at) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Some(Conflict::Occupied)),
            done => done.map(|()| None),
        },
    }
}
