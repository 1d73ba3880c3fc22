//! Image of the memory of an instance, for interpreters whose values have no other form that can be kept. It holds every block
//! that is not left out. Restored in a fresh instance of the same program, it puts the instance back where it was between two
//! calls: functions have no state but memory there, since the stack is empty.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "memory is read and replaced as a whole")]

use std::arch::wasm32::{memory_grow, memory_size};
use std::mem::size_of;
use std::ops::Range;
use std::slice;

/// Size of a block in bytes.
pub const BLOCK: usize = 1024;
/// Maximum size of an image in bytes, and size of the workspace.
pub const MAX_IMAGE: usize = 8 << 20;
/// Size of a page of WebAssembly in bytes.
const PAGE: usize = 1 << 16;
/// Length of the header: the size of the memory.
const HEADER: usize = size_of::<u32>();
/// Length of an entry: the number of a block, and the block.
const ENTRY: usize = size_of::<u32>() + BLOCK;

/// Parts of the memory that no image holds, in their order, with block boundaries.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The stack.
    pub stack: Range<usize>,
    /// [`MAX_IMAGE`] bytes that nothing else uses between two calls. They may be a part of the stack.
    pub workspace: Range<usize>,
    /// Start of the blocks that are zero in an image that does not hold them; those before are as in a fresh instance.
    pub zeros: usize,
}

impl Layout {
    fn holds(&self, address: usize) -> bool {
        !self.stack.contains(&address) && !self.workspace.contains(&address)
    }
}

/// Returns an image of the memory. `is_left_out` gets the number of a block and its content.
///
/// # Errors
///
/// The image would have more than [`MAX_IMAGE`] bytes.
pub fn save(layout: &Layout, is_left_out: impl Fn(usize, &[u8; BLOCK]) -> bool) -> Result<Vec<u8>, String> {
    let size = memory_size(0) * PAGE;
    let end = layout.workspace.start + MAX_IMAGE;
    let mut at = layout.workspace.start;
    let mut put = |bytes: &[u8]| {
        if end - at < bytes.len() {
            let used = "the memory that the programs of the session have used, freed memory included, is more than";
            return Err(format!("{used} {MAX_IMAGE} bytes"));
        }
        // SAFETY: the workspace has room for them, and nothing else uses it.
        unsafe { (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        at += bytes.len();
        Ok(())
    };
    put(&(size as u32).to_le_bytes())?;
    for number in (0..size / BLOCK).filter(|number| layout.holds(number * BLOCK)) {
        // SAFETY: the block is in the memory and not at its start, where the stack is. Nothing writes to it meanwhile.
        let block = unsafe { &*((number * BLOCK) as *const [u8; BLOCK]) };
        if !is_left_out(number, block) {
            put(&(number as u32).to_le_bytes())?;
            put(block)?;
        }
    }
    // The first allocation after the memory was read.
    // SAFETY: these bytes were written above.
    Ok(unsafe { slice::from_raw_parts(layout.workspace.start as *const u8, at - layout.workspace.start) }.to_vec())
}

/// Returns the size of the memory that an image holds; `None` if it is broken.
pub fn size(image: &[u8]) -> Option<usize> {
    image.first_chunk().map(|size| u32::from_le_bytes(*size) as usize)
}

/// Replaces the memory by an image, in an instance that has done nothing else. All values on the heap are those of the image
/// afterwards: the image itself must never be freed.
///
/// # Errors
///
/// The image is broken, or there is not enough memory. Nothing has changed then.
pub fn restore(layout: &Layout, image: &[u8]) -> Result<(), String> {
    let broken = || "the saved memory is damaged".to_owned();
    let size = size(image).ok_or_else(broken)?;
    let entries = &image[HEADER..];
    let (entries, rest) = entries.as_chunks::<ENTRY>();
    let is_inside = |entry: &[u8; ENTRY]| {
        let address = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize * BLOCK;
        address < size && layout.holds(address)
    };
    let is_whole = rest.is_empty() && image.len() <= MAX_IMAGE && size.is_multiple_of(PAGE) && size >= layout.zeros;
    if !is_whole || !entries.iter().all(is_inside) {
        return Err(broken());
    }
    let missing = size.saturating_sub(memory_size(0) * PAGE) / PAGE;
    if memory_grow(0, missing) == usize::MAX {
        return Err("there is not enough memory for the session".to_owned());
    }
    // SAFETY: the workspace has room for the image, and no image holds the workspace.
    unsafe { (layout.workspace.start as *mut u8).copy_from_nonoverlapping(image.as_ptr(), image.len()) };
    let (start, end) = (layout.workspace.start + HEADER, layout.workspace.start + image.len());
    replace(start, end, layout.zeros, [layout.stack.end, layout.workspace.start, layout.workspace.end]);
    Ok(())
}

/// Replaces the memory by the entries of an image between two addresses. It uses nothing but its own variables, which are no
/// part of the memory that is replaced.
#[inline(never)]
fn replace(mut at: usize, end: usize, zeros: usize, [stack, workspace, after]: [usize; 3]) {
    let memory = memory_size(0) * PAGE;
    let clear = |from: usize, to: usize| {
        if from < to {
            // SAFETY: the range is a part of the memory that the image replaces.
            unsafe { (from as *mut u8).write_bytes(0, to - from) };
        }
    };
    clear(zeros.max(stack), workspace);
    clear(zeros.max(stack).max(after), memory);
    while at < end {
        // SAFETY: `restore` checked the numbers, and the entries are in the workspace.
        unsafe {
            let number = (at as *const u32).read_unaligned() as usize;
            ((at + size_of::<u32>()) as *const u8).copy_to_nonoverlapping((number * BLOCK) as *mut u8, BLOCK);
        }
        at += ENTRY;
    }
}
