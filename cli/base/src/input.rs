//! Reads text from a file or standard input up to a maximum size, since either may be endless.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::render;

/// Maximum bytes read.
const MAX_BYTES: u64 = 64 << 20;
/// Time after which a hint says that standard input is awaited.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the text of a file.
pub fn file(path: impl AsRef<Path>) -> io::Result<String> {
    open_file(File::open(path)?, MAX_BYTES)
}

/// Reads the text of an open file with at most `max` bytes.
pub fn open_file(file: File, max: u64) -> io::Result<String> {
    text(bytes_of(file, max)?, max)
}

/// Reads the content of a file with at most `max` bytes.
pub fn bytes(path: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    bytes_of(File::open(path)?, max)
}

/// Reads a regular file of at most `max` bytes; `None` without a file. Nothing else is opened: opening a pipe
/// would wait for its writer.
///
/// # Errors
///
/// It is another kind of file or longer, or cannot be read.
pub fn regular_file(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(about) if !about.is_file() => Err(io::Error::other("not a regular file")),
        about => about.and_then(|_| bytes(path, max)).map(Some),
    }
}

fn bytes_of(file: File, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large(max)) } else { Ok(bytes) }
}

/// Reads the text of standard input.
pub async fn stdin() -> io::Result<String> {
    stdin_up_to(MAX_BYTES).await
}

/// Reads the text of at most `max` bytes that is on standard input besides a prompt; `None` if standard input is no data.
/// A hint says so if its end does not come soon.
pub async fn piped(max: u64) -> io::Result<Option<String>> {
    if !is_data() {
        return Ok(None);
    }
    let mut read = std::pin::pin!(stdin_up_to(max));
    tokio::select! {
        text = &mut read => return text.map(Some),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    render::hint("waiting for the end of standard input, which is added to the prompt; `< /dev/null` adds nothing");
    read.await.map(Some)
}

/// Returns `true` if standard input is a pipe or a regular file, as a shell passes data. A socket is none: programs that start
/// others pass one and may never close it.
pub fn is_data() -> bool {
    system::is_data()
}

async fn stdin_up_to(max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    tokio::io::stdin().take(max + 1).read_to_end(&mut bytes).await?;
    text(bytes, max)
}

fn text(bytes: Vec<u8>, max: u64) -> io::Result<String> {
    if bytes.len() as u64 > max {
        return Err(too_large(max));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-8"))
}

/// Error for a text with more than `max` bytes.
pub fn too_large(max: u64) -> io::Error {
    io::Error::other(format!("larger than the {max} bytes allowed"))
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;

    pub(super) fn is_data() -> bool {
        let input = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let kind = input.and_then(|input| input.metadata()).map(|input| input.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
    }
}

#[cfg(windows)]
mod system {
    use winapi_util::HandleRef;
    use winapi_util::file::typ;

    /// Consoles and the null device are of another kind. A socket is of the same kind as a pipe here.
    pub(super) fn is_data() -> bool {
        typ(HandleRef::stdin()).is_ok_and(|kind| kind.is_disk() || kind.is_pipe())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_regular_file_is_read_within_its_limit_and_nothing_else_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert_eq!(regular_file(&path, 3).unwrap(), None);
        fs::write(&path, b"abc").unwrap();
        assert_eq!(regular_file(&path, 3).unwrap(), Some(b"abc".to_vec()));
        assert!(regular_file(&path, 2).unwrap_err().to_string().contains("larger than the 2 bytes"));
        assert!(regular_file(folder.path(), 3).is_err());
        #[cfg(unix)]
        {
            let socket = folder.path().join("socket");
            let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            assert!(regular_file(&socket, 3).unwrap_err().to_string().contains("not a regular file"));
        }
    }
}
