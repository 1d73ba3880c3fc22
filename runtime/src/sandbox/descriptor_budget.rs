//! File descriptor budget that all guests in the process share: half of the process's own limit, so that the host can
//! still open the audit log, a program or a stored result while many calls open files and connections.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Descriptors of a process that its guests may hold open.
#[derive(Debug)]
pub(super) struct DescriptorBudget {
    max: usize,
    used: AtomicUsize,
}

impl DescriptorBudget {
    fn new(max: usize) -> Self {
        Self { max, used: AtomicUsize::new(0) }
    }

    /// Returns the budget of this process. Descriptors belong to the process, however many runtimes it has.
    pub(super) fn of_process() -> &'static Arc<Self> {
        static BUDGET: OnceLock<Arc<DescriptorBudget>> = OnceLock::new();
        BUDGET.get_or_init(|| Arc::new(Self::new(max_open() / 2)))
    }

    /// Takes this many descriptors together, or none.
    pub(super) fn take(self: &Arc<Self>, count: usize) -> Option<DescriptorPermit> {
        self.reserve(count).then(|| DescriptorPermit { budget: self.clone(), count })
    }

    /// Counts this many descriptors as used; `false` if the budget does not hold them.
    pub(super) fn reserve(&self, count: usize) -> bool {
        let add = |used: usize| used.checked_add(count).filter(|all| *all <= self.max);
        self.used.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Returns reserved descriptors to the budget.
    pub(super) fn release(&self, count: usize) {
        self.used.fetch_sub(count, Relaxed);
    }
}

/// Descriptors taken from the budget; dropping it returns them.
#[derive(Debug)]
pub(super) struct DescriptorPermit {
    budget: Arc<DescriptorBudget>,
    count: usize,
}

impl Drop for DescriptorPermit {
    fn drop(&mut self) {
        self.budget.release(self.count);
    }
}

/// Returns the number of files that the process may have open.
#[cfg(unix)]
fn max_open() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX)
}

/// Returns a number of files that the process may have open: the system sets none, and uses its own memory for each.
#[cfg(windows)]
fn max_open() -> usize {
    16_384
}

#[cfg(test)]
mod tests {
    use super::*;

    impl DescriptorBudget {
        /// Returns a budget of its own for a test.
        pub(in crate::sandbox) fn of(max: usize) -> Arc<Self> {
            Arc::new(Self::new(max))
        }

        pub(in crate::sandbox) fn used(&self) -> usize {
            self.used.load(Relaxed)
        }
    }

    #[test]
    fn places_are_taken_together_or_not_at_all() {
        let budget = DescriptorBudget::of(3);
        let two = budget.take(2).expect("descriptors");
        assert!(budget.take(2).is_none());
        assert!(budget.reserve(1) && !budget.reserve(1), "files and connections share them");
        budget.release(1);
        drop(two);
        assert_eq!(budget.used(), 0);
        assert!(Arc::ptr_eq(DescriptorBudget::of_process(), DescriptorBudget::of_process()));
    }
}
