//! Native program for comparison with a sandboxed call: does the least that a tool can do, and copies its arguments to
//! its answer.

use std::io::{Read, Write};

fn main() {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).expect("standard input can be read");
    std::io::stdout().write_all(&text).expect("standard output can be written");
}
