//! Prints arrays nested 100,000 deep, which is valid JSON.

use std::io::{self, Write};

const DEPTH: usize = 100_000;

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH))
}
