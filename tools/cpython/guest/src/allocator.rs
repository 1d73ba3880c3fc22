//! Allocator of this crate. It has memory of its own, so that the image of a session can leave it out: CPython has its values in
//! the other parts of the memory.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::memory_grow;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::ptr;

use dlmalloc::Dlmalloc;

/// Size of a page of WebAssembly in bytes.
const PAGE: usize = 1 << 16;
/// Maximum number of parts of the memory that the allocator has.
pub(crate) const MAX_PARTS: usize = 256;

struct Allocator(UnsafeCell<State>);

struct State {
    heap: Dlmalloc<System>,
    parts: [Range<usize>; MAX_PARTS],
    /// Parts that a saved memory had, and that are not used yet.
    free: [bool; MAX_PARTS],
    count: usize,
}

// SAFETY: a guest has one thread.
unsafe impl Sync for Allocator {}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(State {
    heap: Dlmalloc::new_with_allocator(System),
    parts: [const { 0..0 }; MAX_PARTS],
    free: [false; MAX_PARTS],
    count: 0,
}));

/// Returns `true` if an address belongs to the allocator.
pub(crate) fn owns(address: usize) -> bool {
    // SAFETY: one thread, and no allocation meanwhile.
    let state = unsafe { &*ALLOCATOR.0.get() };
    state.parts[..state.count].iter().any(|part| part.contains(&address))
}

/// Returns the parts of the memory that the allocator has.
pub(crate) fn parts() -> &'static [Range<usize>] {
    // SAFETY: as for `owns`.
    let state = unsafe { &*ALLOCATOR.0.get() };
    &state.parts[..state.count]
}

/// Forgets all allocations, and has the parts that the allocator of a saved memory of this size had: all of them are free.
///
/// # Safety
///
/// No allocation is used or freed from now on, and the parts belong to nobody else.
pub(crate) unsafe fn adopt(parts: [Range<usize>; MAX_PARTS], size: usize) {
    // SAFETY: one thread, and the caller uses no allocation.
    let state = unsafe { &mut *ALLOCATOR.0.get() };
    state.heap = Dlmalloc::new_with_allocator(System);
    state.free = [true; MAX_PARTS];
    state.count = 0;
    // The last part may have grown for the image itself.
    for part in parts.into_iter().map(|part| part.start..part.end.min(size)).filter(|part| !part.is_empty()) {
        state.parts[state.count] = part;
        state.count += 1;
    }
}

/// Source of the allocator's parts.
struct System;

// SAFETY: each part is new memory, and is never given back.
unsafe impl dlmalloc::Allocator for System {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        // SAFETY: only these fields are used, which the heap that is borrowed meanwhile does not contain.
        let (parts, free, count) = unsafe {
            let state = ALLOCATOR.0.get();
            (&mut (*state).parts, &mut (*state).free, &mut (*state).count)
        };
        if let Some(index) = (0..*count).find(|index| free[*index] && parts[*index].len() >= size) {
            free[index] = false;
            return (parts[index].start as *mut u8, parts[index].len(), 0);
        }
        let pages = size.div_ceil(PAGE);
        let start = if *count < MAX_PARTS { memory_grow(0, pages) } else { usize::MAX };
        if start == usize::MAX {
            return (ptr::null_mut(), 0, 0);
        }
        let part = start * PAGE..(start + pages) * PAGE;
        match parts[..*count].last_mut() {
            Some(last) if last.end == part.start && !free[*count - 1] => last.end = part.end,
            _ => {
                free[*count] = false;
                parts[*count] = part.clone();
                *count += 1;
            }
        }
        (part.start as *mut u8, part.len(), 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

// SAFETY: every request is passed on to the heap, which one thread uses.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { (*self.0.get()).heap.malloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { (*self.0.get()).heap.free(pointer, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { (*self.0.get()).heap.realloc(pointer, layout.size(), layout.align(), size) }
    }
}
