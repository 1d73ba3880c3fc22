//! Calls itself until the stack is exhausted.

use std::hint::black_box;

fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 8]);
    // The sum keeps the frame alive past the call, so that it cannot become a loop.
    black_box(descend as fn(u64) -> u64)(depth + 1).wrapping_add(frame[0])
}

fn main() {
    black_box(descend(0));
}
