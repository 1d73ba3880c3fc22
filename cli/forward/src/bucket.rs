//! Bucket targets: one object per batch, with the name and content of a folder target's file; and their copies.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::folder;
use super::forwarding::SendFailure;
use super::record::ForwardedRecord;
use super::storage::{Bucket, BucketAddress, StorageError};

/// Maximum objects in a copy.
const MAX_OBJECTS: usize = 1_000_000;

/// Writes a batch as an object. Writing it again changes nothing: its name holds its numbers and its last chain value.
pub(crate) async fn send(bucket: &Bucket, batch: &[ForwardedRecord]) -> Result<(), SendFailure> {
    let Some((name, content)) = folder::file(batch) else { return Ok(()) };
    bucket.put(&name, content.into_bytes()).await.map_err(|error| match error {
        StorageError::Missing => SendFailure::Refused("the bucket does not exist".to_owned()),
        StorageError::Refused(_) => SendFailure::Refused(error.to_string()),
        error => SendFailure::retry(error.to_string()),
    })
}

/// Copies all objects below an address into a folder, and returns the name of the target.
///
/// # Errors
///
/// The bucket cannot be read, or has too many objects below the address.
pub async fn fetch_copy(address: BucketAddress, folder: &Path) -> anyhow::Result<String> {
    let address = address.at_environment()?;
    let bucket = Bucket::open(&address)?;
    let mut number = 0;
    let keep = |content: Vec<u8>| -> anyhow::Result<()> {
        number += 1;
        if number > MAX_OBJECTS {
            bail!("more than {MAX_OBJECTS} objects: name a longer prefix");
        }
        // Names of objects are no paths here; their order is that of the list.
        Ok(File::create_new(folder.join(format!("{number:07}")))?.write_all(&content)?)
    };
    bucket.read_all(keep).await.with_context(|| format!("cannot read the copy `{address}`"))?;
    Ok(address.to_string())
}
