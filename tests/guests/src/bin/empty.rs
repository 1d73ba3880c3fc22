//! Prints nothing and exits 0.

fn main() {}
