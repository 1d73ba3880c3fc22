//! Image of a script that was read: the changes that reading made to the memory of this component, beside the state
//! in which every instance starts. A fresh instance to which they are applied is in the state after the reading. Owns
//! the allocator, because an image needs two things of it: memory that is freed becomes zero again while an image is
//! made, so that nothing dead is part of it, and the parameters of an export lie outside of all that an image covers.

#![expect(unsafe_code, reason = "an image is a copy of the memory itself")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::arch::wasm32::{memory_grow, memory_size};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::changes;

/// Maximum size of an image, in bytes.
const MAX_IMAGE: usize = 256 << 10;

/// Number of bytes for the parameters of an export. Longer ones, and images that leave no room for them, are placed in
/// new pages.
const AREA: usize = 64 << 10;

/// Number of bytes that the heap has free when an instance starts, so that scripts that fit need no new pages: an image
/// covers no page that an instance does not start with. An instance starts with 4 MiB.
const FREE: usize = 21 << 16;

const PAGE: usize = 1 << 16;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// State that no image covers.
static OUTSIDE: Outside = Outside {
    is_called: AtomicBool::new(false),
    clears: AtomicBool::new(false),
    used: AtomicUsize::new(0),
    pages: [const { AtomicUsize::new(0) }; 2],
    area: UnsafeCell::new([0; AREA]),
};

#[repr(C, align(16))]
struct Outside {
    /// `true` once the code of an export runs: all its parameters are in their places.
    is_called: AtomicBool,
    /// `true` if freed memory becomes zero.
    clears: AtomicBool,
    /// Used bytes of the area.
    used: AtomicUsize,
    /// First address of the new pages with parameters, and the address behind them.
    pages: [AtomicUsize; 2],
    area: UnsafeCell<[u8; AREA]>,
}

// SAFETY: the component has one thread.
unsafe impl Sync for Outside {}

struct Allocator;

// SAFETY: the memory is that of the system's allocator, or parameters, which are never reused.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if is_parameter(at) {
            return;
        }
        // SAFETY: as for the caller; the memory is no longer used.
        unsafe {
            if OUTSIDE.clears.load(Relaxed) {
                at.write_bytes(0, layout.size());
                // The compiler may not leave out a write to memory that is freed next.
                black_box(at);
            }
            System.dealloc(at, layout);
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for the caller; the two pieces of memory do not overlap.
        unsafe {
            if !is_parameter(at) && !OUTSIDE.clears.load(Relaxed) {
                return System.realloc(at, layout, size);
            }
            let new = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(at, new, layout.size().min(size));
                self.dealloc(at, layout);
            }
            new
        }
    }
}

fn is_parameter(at: *mut u8) -> bool {
    let [first, end] = &OUTSIDE.pages;
    let area = OUTSIDE.area.get().addr();
    (area..area + AREA).contains(&at.addr()) || (first.load(Relaxed)..end.load(Relaxed)).contains(&at.addr())
}

/// Memory for what the host passes: outside of images for the parameters of an export, on the heap for the results of
/// imports. Replaces the function of the bindings.
///
/// # Safety
///
/// As the canonical ABI calls it.
#[unsafe(export_name = "cabi_realloc")]
unsafe extern "C" fn receive(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    if OUTSIDE.is_called.load(Relaxed) {
        // SAFETY: as for the caller, who never asks for an alignment that is no power of two.
        return unsafe {
            match old_size {
                0 => ALLOCATOR.alloc(Layout::from_size_align_unchecked(size, align)),
                _ => ALLOCATOR.realloc(old, Layout::from_size_align_unchecked(old_size, align), size),
            }
        };
    }
    let new = parameter(align, size);
    // SAFETY: both places have this many bytes, and the new one is not used.
    unsafe { ptr::copy_nonoverlapping(old, new, old_size.min(size)) };
    new
}

/// Returns unused memory outside of images.
fn parameter(align: usize, size: usize) -> *mut u8 {
    let area = OUTSIDE.area.get().cast::<u8>();
    let used = OUTSIDE.used.load(Relaxed);
    let start = used + area.wrapping_add(used).align_offset(align);
    if size <= AREA && start <= AREA - size {
        OUTSIDE.used.store(start + size, Relaxed);
        return area.wrapping_add(start);
    }
    let at = new_pages(size).unwrap_or_else(|| std::process::abort());
    let [first, end] = &OUTSIDE.pages;
    if first.load(Relaxed) == 0 {
        first.store(at, Relaxed);
    }
    end.store(at + size, Relaxed);
    ptr::with_exposed_provenance_mut(at)
}

/// Returns the address of new pages.
fn new_pages(size: usize) -> Option<usize> {
    let page = memory_grow::<0>(size.div_ceil(PAGE));
    (page != usize::MAX).then_some(page * PAGE)
}

/// Ends the placing of parameters. Every export begins with this.
pub(crate) fn begin() {
    OUTSIDE.is_called.store(true, Relaxed);
}

/// Prepares the state in which every instance starts: `warm` runs, leaves nothing that is freed, and enough memory is free.
pub(crate) fn prepare(warm: impl FnOnce()) {
    OUTSIDE.clears.store(true, Relaxed);
    drop(black_box(Vec::<u8>::with_capacity(FREE)));
    warm();
    OUTSIDE.clears.store(false, Relaxed);
}

/// Returns the image of what `read` does, if `read` returns `true`; none if it is too large, or needed new pages.
pub(crate) fn of(read: impl FnOnce() -> bool) -> Option<Vec<u8>> {
    let end = memory_size::<0>() * PAGE;
    let covered = covered(end)?;
    let before = new_pages(end + MAX_IMAGE)?;
    let pages = memory_size::<0>();
    for &(start, end) in &covered {
        // SAFETY: both are parts of the memory, and the new pages are not used.
        unsafe { ptr::copy_nonoverlapping(pointer(start), pointer(before + start).cast_mut(), end - start) };
    }
    OUTSIDE.clears.store(true, Relaxed);
    let is_read = read();
    OUTSIDE.clears.store(false, Relaxed);
    if !is_read || memory_size::<0>() != pages {
        return None;
    }
    // SAFETY: the last of the new pages, which are not used.
    let image = unsafe { slice::from_raw_parts_mut(pointer(before + end).cast_mut(), MAX_IMAGE) };
    let mut used = 0;
    for (start, end) in covered {
        // SAFETY: nothing writes to the memory meanwhile but this function, to `image`, which is in neither.
        let (old, new) = unsafe {
            (
                slice::from_raw_parts(pointer(before + start), end - start),
                slice::from_raw_parts(pointer(start), end - start),
            )
        };
        used += changes::write(old, black_box(new), start, image.get_mut(used..)?)?;
    }
    Some(image.get(..used)?.to_vec())
}

/// Returns the ranges of the memory that an image covers: all but the stack, which is in front, and the state outside; `None` if the
/// linker has placed them otherwise.
fn covered(end: usize) -> Option<[(usize, usize); 2]> {
    unsafe extern "C" {
        static __stack_high: u8;
    }
    let (first, outside) = ((&raw const __stack_high).addr(), (&raw const OUTSIDE).addr());
    let ranges = [(first, outside), (outside + size_of::<Outside>(), end)];
    ranges.iter().all(|(start, end)| start <= end).then_some(ranges)
}

fn pointer(address: usize) -> *const u8 {
    ptr::with_exposed_provenance(address)
}

/// Brings this instance, in which nothing has run, into the state of an image. The image itself is a parameter, and so in
/// none of the places that it changes. One that this component did not make can harm only its own instance.
#[inline(never)]
pub(crate) fn apply(image: &[u8]) {
    begin();
    for (address, bytes) in changes::read(image) {
        // SAFETY: the host passes an image of the same component and only in a fresh instance; places outside of the memory
        // end it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(address).cast_mut(), bytes.len()) };
    }
    // Everything may have changed: nothing that was read before is used after this.
    black_box(&OUTSIDE);
}
