//! Memory of values. The engine has no limit of its own, so the allocator counts: when the values of a program exceed their
//! limit, it sets the engine's other limits to zero, and the next call or loop turn of the program ends it. That is before
//! the memory of the instance is exhausted if the limit is well below it.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use boa_engine::Context;
use boa_engine::vm::RuntimeLimits;

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
    /// Limits of the engine that runs; null if none runs.
    static ENGINE: Cell<*mut RuntimeLimits> = const { Cell::new(ptr::null_mut()) };
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

/// Runs a part of a program under the limit.
pub(crate) fn run<T>(context: &mut Context, part: impl FnOnce(&mut Context) -> T) -> T {
    ENGINE.set(context.runtime_limits_mut());
    let result = part(context);
    ENGINE.set(ptr::null_mut());
    result
}

fn count(size: usize) {
    let used = USED.get().saturating_add(size);
    USED.set(used);
    if used >= LIMIT.get() {
        stop();
    }
}

#[cold]
fn stop() {
    // The count stays above the limit: what is freed from now on no longer counts.
    LIMIT.set(0);
    let engine = ENGINE.get();
    if !engine.is_null() {
        // SAFETY: `run` sets the pointer for as long as its borrow of the context lasts, on this thread. The engine copies the
        // fields out at every call and loop turn and keeps no reference to them in between, so that no reference is live here.
        unsafe {
            (*engine).set_recursion_limit(0);
            (*engine).set_loop_iteration_limit(0);
        }
    }
}

fn discount(size: usize) {
    USED.set(USED.get().saturating_sub(size));
}

// SAFETY: every request is passed on to the allocator of the system unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        discount(layout.size());
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        discount(layout.size().saturating_sub(size));
        // SAFETY: the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
