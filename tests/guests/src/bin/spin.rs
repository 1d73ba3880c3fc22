//! Loops forever without a call to the host.

use std::hint::black_box;

fn main() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}
