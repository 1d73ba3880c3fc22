//! Image of a session. The engine cannot write its values, so a session is the whole memory of the instance.

#![allow(unsafe_code, reason = "addresses of the stack and of a buffer are needed, not their contents")]

use std::mem::ManuallyDrop;

use code_image::{BLOCK, Layout, MAX_IMAGE};

unsafe extern "C" {
    /// End of the stack, which begins the memory.
    static __stack_high: u8;
}

/// Memory for images.
#[repr(C, align(1024))]
struct Workspace([u8; MAX_IMAGE]);

static mut WORKSPACE: Workspace = Workspace([0; MAX_IMAGE]);
const _: () = assert!(align_of::<Workspace>() == BLOCK);

fn layout() -> Layout {
    let stack = (&raw const __stack_high) as usize;
    let workspace = (&raw mut WORKSPACE) as usize;
    assert!(stack.is_multiple_of(BLOCK), "the block at the end of the stack has other values");
    Layout { stack: 0..stack, workspace: workspace..workspace + MAX_IMAGE, zeros: 0 }
}

/// Returns the session as bytes.
///
/// # Errors
/// They are too many.
pub(crate) fn save() -> Result<Vec<u8>, String> {
    code_image::save(&layout(), |_, block| block.iter().all(|byte| *byte == 0))
}

/// Restores a session in a fresh instance.
///
/// # Errors
/// The bytes are broken, or there is not enough memory.
pub(crate) fn restore(state: Vec<u8>) -> Result<(), String> {
    // The allocator of the image does not know it.
    code_image::restore(&layout(), &ManuallyDrop::new(state))
}
