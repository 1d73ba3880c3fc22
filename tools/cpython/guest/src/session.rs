//! Sessions: the blocks of CPython's memory that differ from those of a fresh instance.

#![allow(unsafe_code, reason = "the memory is read as a whole")]

use std::arch::wasm32::memory_size;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::Range;

use code_image::{BLOCK, Layout, MAX_IMAGE};

use crate::allocator::{self, MAX_PARTS};
use crate::python::MAX_MEMORY;

/// Size of a page of WebAssembly in bytes.
const PAGE: usize = 1 << 16;
/// End of the stack of CPython, which begins the memory.
const STACK_END: usize = 16 << 20;

/// Memory of a fresh instance.
struct Fresh {
    /// Hash of each block.
    hashes: [u64; MAX_MEMORY / BLOCK],
    /// End of the data and the stack of this crate.
    own_end: usize,
    /// Size of the memory.
    size: usize,
}

thread_local! {
    static FRESH: RefCell<Fresh> = const { RefCell::new(Fresh { hashes: [0; MAX_MEMORY / BLOCK], own_end: 0, size: 0 }) };
}

unsafe extern "C" {
    /// Start of the data of this crate.
    static __global_base: u8;
}

/// Data and stack of this crate, which no image contains: it keeps no values between two calls.
fn own(fresh: &Fresh) -> Range<usize> {
    (&raw const __global_base) as usize..fresh.own_end
}

/// Notes where the data and the stack of this crate end: before anything else is done, at the end of the memory.
pub(crate) fn begin() {
    FRESH.with_borrow_mut(|fresh| fresh.own_end = memory_size(0) * PAGE);
}

/// Layout of the memory: between two calls the stack of CPython is empty, and has room for an image.
fn layout(fresh: &Fresh) -> Layout {
    Layout { stack: 0..STACK_END, workspace: STACK_END - MAX_IMAGE..STACK_END, zeros: fresh.size }
}

/// Remembers the memory of a fresh instance, for the snapshot that each program starts from.
pub(crate) fn remember() {
    FRESH.with_borrow_mut(|fresh| {
        fresh.size = memory_size(0) * PAGE;
        assert!(fresh.size <= MAX_MEMORY, "CPython has more memory than sessions allow");
        for number in STACK_END / BLOCK..fresh.size / BLOCK {
            // SAFETY: the block is in the memory, and nothing writes to it while it is hashed.
            fresh.hashes[number] = hash(unsafe { &*((number * BLOCK) as *const [u8; BLOCK]) });
        }
    });
}

/// Returns the session as bytes.
///
/// # Errors
///
/// They are too many.
pub(crate) fn save() -> Result<Vec<u8>, String> {
    let image = FRESH.with_borrow(|fresh| {
        let own = own(fresh);
        code_image::save(&layout(fresh), |number, block| {
            let address = number * BLOCK;
            let is_fresh = || match address < fresh.size {
                true => fresh.hashes[number] == hash(block),
                false => block.iter().all(|byte| *byte == 0),
            };
            own.contains(&address) || allocator::owns(address) || is_fresh()
        })
    })?;
    // The next instance uses the parts of this allocator again.
    let parts: Vec<u32> = allocator::parts().iter().flat_map(|part| [part.start as u32, part.end as u32]).collect();
    let numbers = [parts.len() as u32].into_iter().chain(parts);
    Ok(numbers.flat_map(u32::to_le_bytes).chain(image).collect())
}

/// Restores a session in a fresh instance.
///
/// # Errors
///
/// The bytes are broken, or there is not enough memory.
pub(crate) fn restore(state: Vec<u8>) -> Result<(), String> {
    let broken = || "the saved memory is damaged".to_owned();
    // The allocator of the image does not know it.
    let state = ManuallyDrop::new(state);
    let (count, rest) = state.split_first_chunk().ok_or_else(broken)?;
    let count = u32::from_le_bytes(*count) as usize;
    if !count.is_multiple_of(2) || count > 2 * MAX_PARTS {
        return Err(broken());
    }
    let (numbers, image) = rest.split_at_checked(count * 4).ok_or_else(broken)?;
    let mut parts = [const { 0..0 }; MAX_PARTS];
    for (part, [start, end]) in parts.iter_mut().zip(numbers.as_chunks::<4>().0.as_chunks::<2>().0) {
        *part = u32::from_le_bytes(*start) as usize..u32::from_le_bytes(*end) as usize;
    }
    let size = code_image::size(image).ok_or_else(broken)?;
    FRESH.with_borrow(|fresh| code_image::restore(&layout(fresh), image))?;
    // SAFETY: the image is restored, and no value of before is used any more. What the allocator had beyond the image is new.
    unsafe { allocator::adopt(parts, size) };
    Ok(())
}

/// Hash of a block. Whoever finds another block with the same hash damages only the own session.
fn hash(block: &[u8; BLOCK]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, _) = block.as_chunks::<8>();
    words.iter().fold(FACTOR, |hash, word| (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR))
}
