//! Memory of values. The engine has no limit of its own, so the allocator counts. A program whose values exceed their limit ends
//! at its next call of a tool, job or guarded function; one that does nothing of it ends with the memory of its instance.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counting allocator.
pub(crate) struct Counter;

#[global_allocator]
static ALLOCATOR: Counter = Counter;

thread_local! {
    /// Bytes in use.
    static USED: Cell<usize> = const { Cell::new(0) };
    /// Value of `USED` at which the program is stopped.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Value of `USED` at which garbage is collected.
    static RELIEF: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns the bytes in use.
pub(crate) fn used() -> usize {
    USED.get()
}

/// Returns the bytes that are left for values.
pub(crate) fn left() -> usize {
    LIMIT.get().saturating_sub(USED.get())
}

/// Returns `true` if the program is stopped.
pub(crate) fn exceeded() -> bool {
    left() == 0
}

/// Sets the limit of the program that starts, above the `base` bytes of an engine without values.
pub(crate) fn set_limit(base: usize, limit: Option<usize>) {
    LIMIT.set(limit.map_or(usize::MAX, |limit| base.saturating_add(limit)));
    plan_relief();
}

/// Collects garbage if much memory is in use. The engine counts its objects alone, not their contents: a few large arrays that
/// are garbage would reach the limit.
pub(crate) fn relieve() {
    if USED.get() >= RELIEF.get() && !exceeded() {
        boa_engine::gc::force_collect();
        plan_relief();
    }
}

fn plan_relief() {
    RELIEF.set(USED.get().saturating_add(left() / 4));
}

fn count(size: usize) {
    let used = USED.get().saturating_add(size);
    USED.set(used);
    if used >= LIMIT.get() {
        // The count stays above the limit: what is freed from now on no longer counts.
        LIMIT.set(0);
    }
}

fn discount(size: usize) {
    USED.set(USED.get().saturating_sub(size));
}

// SAFETY: every request is passed on to the allocator of the system; counting allocates nothing.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        discount(layout.size());
        // The image of a session has no values that were freed.
        // SAFETY: the caller's.
        unsafe {
            pointer.write_bytes(0, layout.size());
            System.dealloc(pointer, layout)
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's. The system would leave the old values where they were.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}
