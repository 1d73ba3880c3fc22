//! Text that the program is pointed at, in a file or on standard input: read up to a cap, since either may be endless.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tokio::io::AsyncReadExt;

/// The most bytes that are read.
const MAX_BYTES: u64 = 64 << 20;

/// The text of a file.
pub(crate) fn file(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    text(bytes)
}

/// The text of standard input.
pub(crate) async fn stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    tokio::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes).await?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("more than the {MAX_BYTES} bytes that are read")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-8"))
}
