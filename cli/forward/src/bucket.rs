//! Bucket targets: one object per batch, with the name and content of a folder target's file; and their copies.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use toolcrib_base::render;

use super::folder;
use super::forwarding::SendFailure;
use super::record::ForwardedRecord;
use super::storage::{Bucket, BucketAddress, StorageError};

/// Maximum objects in a copy.
const MAX_OBJECTS: usize = 1_000_000;
/// Maximum size of a copy in bytes.
const MAX_BYTES: u64 = 16 << 30;

/// Variables that name credentials. If none is set, the machine's role is asked for them.
const CREDENTIALS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Writes a batch as an object. Writing it again changes nothing: its name holds its numbers and its last chain value. A bucket that is
/// missing may come back while `is_following`.
pub(crate) async fn send(bucket: &Bucket, batch: &[ForwardedRecord], is_following: bool) -> Result<(), SendFailure> {
    let Some((name, content)) = folder::file(batch) else { return Ok(()) };
    bucket.put(&name, content.into_bytes()).await.map_err(|error| match error {
        StorageError::Missing if is_following => SendFailure::retry("the bucket does not exist".to_owned()),
        StorageError::Missing => SendFailure::Refused("the bucket does not exist".to_owned()),
        StorageError::Refused(_) => SendFailure::Refused(error.to_string()),
        error => SendFailure::retry(format!("{error}{}", missing_credentials())),
    })
}

/// Copies the forwarder's objects below an address into a folder, and returns the name of the target with the number of other objects.
///
/// # Errors
///
/// The bucket cannot be read, or has too many objects below the address.
pub async fn fetch_copy(address: BucketAddress, folder: &Path) -> anyhow::Result<(String, u64)> {
    let address = address.at_environment()?;
    if address.is_exposed() {
        render::warning(&format!("records are read from {address} without encryption"));
    }
    let bucket = Bucket::open(&address)?;
    let mut copy = CopyFolder { folder, objects: 0, bytes: 0, max_objects: MAX_OBJECTS, max_bytes: MAX_BYTES };
    let keep = |name: &str, content: Vec<u8>| copy.keep(name, &content);
    let unread = || format!("cannot read the copy `{address}`{}", missing_credentials());
    let others = bucket.read_all(folder::is_name, keep).await.with_context(unread)?;
    Ok((address.to_string(), others))
}

/// Folder with the objects of a copy.
struct CopyFolder<'a> {
    folder: &'a Path,
    objects: usize,
    bytes: u64,
    max_objects: usize,
    max_bytes: u64,
}

impl CopyFolder<'_> {
    /// Writes an object as the next file.
    fn keep(&mut self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        self.objects += 1;
        self.bytes += content.len() as u64;
        if self.objects > self.max_objects || self.bytes > self.max_bytes {
            let (objects, gibibytes) = (self.max_objects, self.max_bytes >> 30);
            bail!("more than {objects} objects or {gibibytes} GiB: name a longer prefix");
        }
        Ok(File::create_new(self.folder.join(format!("{:07}-{name}", self.objects)))?.write_all(content)?)
    }
}

/// Returns a part of a message if the environment names no credentials.
fn missing_credentials() -> &'static str {
    match CREDENTIALS.iter().any(|name| env::var_os(name).is_some()) {
        true => "",
        false => "; no credentials are set in AWS_ACCESS_KEY_ID, so the role of this machine was asked for them",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_maximum_of_objects_and_bytes() {
        for (max_objects, max_bytes) in [(2, 1 << 30), (9, 5)] {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = CopyFolder { folder: folder.path(), objects: 0, bytes: 0, max_objects, max_bytes };
            assert!((0..2).all(|_| copy.keep("a.ndjson", b"ab").is_ok()));
            assert!(copy.keep("a.ndjson", b"ab").is_err());
            assert_eq!(folder.path().read_dir().unwrap().count(), 2);
        }
    }
}
