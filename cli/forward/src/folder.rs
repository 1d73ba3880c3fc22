//! Folder targets: one file per batch, named by its first and last record, written whole and renamed. A shipper may move files
//! away at any time.

use std::fs::File;
use std::path::Path;

use toolcrib_base::whole_file::{self, Readers};

use super::forwarding::SendFailure;
use super::record::ForwardedRecord;

/// Digits of a number in a name, so that names sort as numbers.
const DIGITS: usize = 12;
/// Characters of the last chain value in a name.
const CHAIN: usize = 16;

/// Writes a batch as a file of one line per record. A folder that is missing may come back while `is_following`.
pub(crate) fn send(folder: &Path, batch: &[ForwardedRecord], is_following: bool) -> Result<(), SendFailure> {
    let Some((name, content)) = file(batch) else { return Ok(()) };
    if !folder.is_dir() {
        let why = format!("`{}` is not a directory: create or mount it", folder.display());
        return Err(if is_following { SendFailure::retry(why) } else { SendFailure::Refused(why) });
    }
    let path = folder.join(name);
    let written = whole_file::replace(&path, content.as_bytes(), Readers::Owner);
    written.map_err(|error| SendFailure::retry(format!("cannot write `{}`: {error}", path.display())))?;
    // A rename survives a crash once its folder is synced; some systems cannot sync folders.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Returns `true` for the name of a batch's file.
pub(crate) fn is_name(name: &str) -> bool {
    let parts = name.strip_suffix(".ndjson").map(|name| name.split('-').collect::<Vec<_>>());
    let Some([first, last, chain]) = parts.as_deref() else { return false };
    let is_number = |text: &str| text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(first) && is_number(last) && chain.len() == CHAIN && chain.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the name and the content of a batch's file; `None` without records.
pub(crate) fn file(batch: &[ForwardedRecord]) -> Option<(String, String)> {
    let (first, last) = (batch.first()?, batch.last()?);
    let mut content = String::new();
    for record in batch {
        content.push_str(&record.line);
        content.push('\n');
    }
    let chain = last.place.chain.to_string();
    let name = format!("{:0DIGITS$}-{:0DIGITS$}-{}.ndjson", first.place.seq, last.place.seq, &chain[..CHAIN]);
    Some((name, content))
}
