//! Prints two lines of JSON, although one is required.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(b"{\"line\":1}\n{\"line\":2}\n")
}
