//! Prints a JSON string with bytes that are not UTF-8.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(b"{\"text\":\"a\xff\xfez\"}\n")
}
