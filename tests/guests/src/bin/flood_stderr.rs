//! Writes to stderr without end.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let block = [b'x'; 64 * 1024];
    loop {
        io::stderr().write_all(&block)?;
    }
}
