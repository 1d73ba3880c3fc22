//! Writes to stdout without end.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let block = [b'x'; 64 * 1024];
    loop {
        io::stdout().write_all(&block)?;
    }
}
