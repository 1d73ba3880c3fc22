//! How many files and connections all guests together hold open: at most half of what the process may, so that however
//! many calls flood it, the host still opens its own: the audit log, a program, a kept result.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// How many a call opens before the closed ones among them are looked for.
const LOOK_AFTER: usize = 32;

/// The places of a process, which all of its guests share.
#[derive(Debug)]
pub(in crate::sandbox) struct OpenFiles {
    most: usize,
    held: AtomicUsize,
}

impl OpenFiles {
    /// Those of this process: descriptors are its own, however many runtimes there are in it.
    pub(in crate::sandbox) fn of_process() -> &'static Arc<Self> {
        static PLACES: OnceLock<Arc<OpenFiles>> = OnceLock::new();
        PLACES.get_or_init(|| Arc::new(Self { most: open_at_most() / 2, held: AtomicUsize::new(0) }))
    }

    /// Takes so many places at once, or none.
    pub(in crate::sandbox) fn take(self: &Arc<Self>, count: usize) -> Option<Places> {
        let add = |held: usize| held.checked_add(count).filter(|all| *all <= self.most);
        let taken = self.held.fetch_update(Relaxed, Relaxed, add);
        taken.is_ok().then(|| Places { all: self.clone(), count })
    }
}

/// Some places, given back when this is dropped.
#[derive(Debug)]
pub(in crate::sandbox) struct Places {
    all: Arc<OpenFiles>,
    count: usize,
}

impl Drop for Places {
    fn drop(&mut self) {
        self.all.held.fetch_sub(self.count, Relaxed);
    }
}

/// The places of one call, given back with it.
#[derive(Debug)]
pub(super) struct Held {
    all: Arc<OpenFiles>,
    /// How many of the places are taken by this call.
    taken: usize,
    /// What stands on them. A file lives as long as a descriptor or a stream of the guest holds it.
    files: Vec<Weak<dyn Any + Send + Sync>>,
}

impl Held {
    pub(super) fn new(all: &Arc<OpenFiles>) -> Self {
        Self { all: all.clone(), taken: 0, files: Vec::new() }
    }

    /// Takes a place for a file that is about to be opened.
    pub(super) fn take(&mut self) -> Result<(), ErrorCode> {
        if self.files.len() >= LOOK_AFTER {
            self.forget_closed();
        }
        if !self.try_take() {
            self.forget_closed();
            if !self.try_take() {
                return Err(ErrorCode::Busy);
            }
        }
        Ok(())
    }

    /// What was opened stands on the place that was taken last.
    pub(super) fn keep<T: Send + Sync + 'static>(&mut self, file: &Arc<T>) {
        let file: Weak<T> = Arc::downgrade(file);
        self.files.push(file);
    }

    /// Nothing was opened.
    pub(super) fn give_back(&mut self) {
        self.taken -= 1;
        self.all.held.fetch_sub(1, Relaxed);
    }

    fn try_take(&mut self) -> bool {
        let most = self.all.most;
        let taken = self.all.held.fetch_update(Relaxed, Relaxed, |held| (held < most).then_some(held + 1)).is_ok();
        self.taken += usize::from(taken);
        taken
    }

    fn forget_closed(&mut self) {
        let before = self.files.len();
        self.files.retain(|file| file.strong_count() > 0);
        let closed = before - self.files.len();
        self.taken -= closed;
        self.all.held.fetch_sub(closed, Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.all.held.fetch_sub(self.taken, Relaxed);
        }
    }
}

/// How many files the process may have open.
#[cfg(unix)]
fn open_at_most() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn open_at_most() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_file_gives_its_place_back_and_so_does_the_end_of_a_call() {
        let all = Arc::new(OpenFiles { most: 2, held: AtomicUsize::new(0) });
        let mut one = Held::new(&all);
        let files = [Arc::new(1), Arc::new(2)];
        for file in &files {
            one.take().expect("a place");
            one.keep(file);
        }
        let mut other = Held::new(&all);
        assert!(other.take().is_err() && one.take().is_err());
        drop(files);
        assert!(one.take().is_ok());
        one.give_back();
        assert!(one.take().is_ok());
        drop(one);
        assert!(other.take().is_ok() && other.take().is_ok() && other.take().is_err());
        drop(other);
        assert_eq!(all.held.load(Relaxed), 0);
    }

    #[test]
    fn places_are_taken_together_or_not_at_all() {
        let all = Arc::new(OpenFiles { most: 3, held: AtomicUsize::new(0) });
        let two = all.take(2).expect("places");
        assert!(all.take(2).is_none());
        let mut files = Held::new(&all);
        assert!(files.take().is_ok() && files.take().is_err(), "files and connections share them");
        drop((two, files));
        assert_eq!(all.held.load(Relaxed), 0);
        assert!(Arc::ptr_eq(OpenFiles::of_process(), OpenFiles::of_process()));
    }
}
