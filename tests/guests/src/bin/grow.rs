//! Allocates 4 GiB of memory, one mebibyte at a time, and touches every page.

use std::hint::black_box;

fn main() {
    let mut kept = Vec::new();
    for _ in 0..4096 {
        let mut block = vec![0_u8; 1 << 20];
        block.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        kept.push(black_box(block));
    }
}
