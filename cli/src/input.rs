//! Reads text from a file or standard input up to a maximum size, since either may be endless.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tokio::io::AsyncReadExt;

/// Maximum bytes read.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the text of a file.
pub(crate) fn file(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    text(bytes)
}

/// Reads the text of standard input.
pub(crate) async fn stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    tokio::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes).await?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than the {MAX_BYTES} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-8"))
}
