//! Sessions: the blocks of CPython's memory that differ from those of a fresh instance.

use std::arch::wasm32::memory_size;
use std::cell::RefCell;

use code_image::{BLOCK, Layout, MAX_IMAGE};

use crate::allocator;

/// Maximum memory of a fresh instance, in bytes.
const MAX_MEMORY: usize = 64 << 20;
/// Size of a page of WebAssembly in bytes.
const PAGE: usize = 1 << 16;
/// End of the stack of CPython, which begins the memory.
const STACK_END: usize = 16 << 20;

/// Memory of a fresh instance.
struct Fresh {
    /// Hash of each block.
    hashes: [u64; MAX_MEMORY / BLOCK],
    /// Size of the memory.
    size: usize,
}

thread_local! {
    static FRESH: RefCell<Fresh> = const { RefCell::new(Fresh { hashes: [0; MAX_MEMORY / BLOCK], size: 0 }) };
}

unsafe extern "C" {
    /// Start of the data of this crate.
    static __global_base: u8;
    /// End of the data of this crate.
    static __heap_base: u8;
}

/// Data and stack of this crate, which no image contains: it keeps no values between two calls.
fn own() -> std::ops::Range<usize> {
    /// Size of the stack, which the builder puts behind the data, in bytes.
    const STACK: usize = 1 << 20;
    let end = (&raw const __heap_base) as usize;
    (&raw const __global_base) as usize..end.next_multiple_of(PAGE) + STACK
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
    let own = own();
    FRESH.with_borrow(|fresh| {
        code_image::save(&layout(fresh), |number, block| {
            let address = number * BLOCK;
            let is_fresh = || match address < fresh.size {
                true => fresh.hashes[number] == hash(block),
                false => block.iter().all(|byte| *byte == 0),
            };
            own.contains(&address) || allocator::owns(address) || is_fresh()
        })
    })
}

/// Restores a session in a fresh instance.
///
/// # Errors
///
/// The bytes are broken, or there is not enough memory.
pub(crate) fn restore(state: Vec<u8>) -> Result<(), String> {
    FRESH.with_borrow(|fresh| code_image::restore(&layout(fresh), state))?;
    // SAFETY: the image is restored, and no value of before is used any more.
    unsafe { allocator::forget() };
    Ok(())
}

/// Hash of a block. Whoever finds another block with the same hash damages only the own session.
fn hash(block: &[u8; BLOCK]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, _) = block.as_chunks::<8>();
    words.iter().fold(FACTOR, |hash, word| (hash.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR))
}
