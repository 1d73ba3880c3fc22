//! Prints a line that is not JSON.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(b"it works on my machine\n")
}
