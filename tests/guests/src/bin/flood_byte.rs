//! Writes to stdout without end, one byte per call to the host.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    loop {
        io::stdout().write_all(b"x")?;
        io::stdout().flush()?;
    }
}
