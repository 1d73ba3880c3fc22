//! Descriptors that the guest in one call holds open, taken from the budget for all guests.

use std::any::Any;
use std::sync::{Arc, Weak};

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::sandbox::descriptor_budget::DescriptorBudget;

/// Number of opened files that makes a call look for closed ones before it opens another.
const SWEEP_THRESHOLD: usize = 32;

/// Descriptors of one call; dropping it returns them to the budget.
#[derive(Debug)]
pub(super) struct CallDescriptors {
    budget: Arc<DescriptorBudget>,
    /// Descriptors that this call has taken.
    taken: usize,
    /// Open files. A file is alive while a descriptor or a stream of the guest refers to it.
    files: Vec<Weak<dyn Any + Send + Sync>>,
}

impl CallDescriptors {
    pub(super) fn new(budget: &Arc<DescriptorBudget>) -> Self {
        Self { budget: budget.clone(), taken: 0, files: Vec::new() }
    }

    /// Takes a descriptor for a file that is about to be opened.
    pub(super) fn take(&mut self) -> Result<(), ErrorCode> {
        if self.files.len() >= SWEEP_THRESHOLD {
            self.sweep();
        }
        if !self.try_take() {
            self.sweep();
            if !self.try_take() {
                return Err(ErrorCode::Busy);
            }
        }
        Ok(())
    }

    /// Ties the descriptor that was taken last to the file that was opened on it.
    pub(super) fn assign<T: Send + Sync + 'static>(&mut self, file: &Arc<T>) {
        let file: Weak<T> = Arc::downgrade(file);
        self.files.push(file);
    }

    /// Returns the descriptor that was taken last, on which nothing was opened.
    pub(super) fn give_back(&mut self) {
        self.taken -= 1;
        self.budget.release(1);
    }

    fn try_take(&mut self) -> bool {
        let taken = self.budget.reserve(1);
        self.taken += usize::from(taken);
        taken
    }

    /// Returns the descriptors of closed files.
    fn sweep(&mut self) {
        let before = self.files.len();
        self.files.retain(|file| file.strong_count() > 0);
        let closed = before - self.files.len();
        self.taken -= closed;
        self.budget.release(closed);
    }
}

impl Drop for CallDescriptors {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.budget.release(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_file_gives_its_place_back_and_so_does_the_end_of_a_call() {
        let budget = DescriptorBudget::of(2);
        let mut one = CallDescriptors::new(&budget);
        let files = [Arc::new(1), Arc::new(2)];
        for file in &files {
            one.take().expect("a descriptor");
            one.assign(file);
        }
        let mut other = CallDescriptors::new(&budget);
        assert!(other.take().is_err() && one.take().is_err());
        drop(files);
        assert!(one.take().is_ok());
        one.give_back();
        assert!(one.take().is_ok());
        drop(one);
        assert!(other.take().is_ok() && other.take().is_ok() && other.take().is_err());
        drop(other);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn files_and_connections_share_one_budget() {
        let budget = DescriptorBudget::of(3);
        let connection = budget.take(2).expect("descriptors");
        let mut files = CallDescriptors::new(&budget);
        assert!(files.take().is_ok() && files.take().is_err());
        drop((connection, files));
        assert_eq!(budget.used(), 0);
    }
}
