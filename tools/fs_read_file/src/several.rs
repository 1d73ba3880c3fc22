//! Several files in one call: each has its own outcome, and they share the limit of the call.

use std::fs;

use serde::Serialize;
use toolcrib_guest::{Encoding, Error, error};

use crate::Content;

/// Maximum files of a call.
const MAX_PATHS: usize = 50;

/// Outcome of one of the files.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Read {
    Content(Content),
    Failed { path: String, error: String },
}

/// Reads the files in their order, `limit` bytes together.
///
/// # Errors
///
/// If there are no paths or too many, or if no file can be read.
pub(crate) fn read_all(paths: Vec<String>, limit: u64, encoding: Encoding) -> Result<Vec<Read>, Error> {
    if !(1..=MAX_PATHS).contains(&paths.len()) {
        return Err(error!("`path` has {} paths, which is not between 1 and {MAX_PATHS}", paths.len()));
    }
    if limit < paths.len() as u64 {
        return Err(error!("limit `{limit}` is less than one byte for each of the {} paths", paths.len()));
    }
    // A file that cannot be read needs no share.
    let sizes =
        paths.iter().map(|path| fs::metadata(path).map_or(0, |found| if found.is_file() { found.len() } else { 0 }));
    let shares = shares(&sizes.collect::<Vec<_>>(), limit);
    let read = paths.into_iter().zip(shares).map(|(path, share)| {
        // A share is empty only for a file without content.
        match crate::read(path.clone(), 0, share.max(1), encoding) {
            Ok(content) => Read::Content(content),
            Err(error) => Read::Failed { path, error: error.to_string() },
        }
    });
    let read: Vec<Read> = read.collect();
    if read.iter().any(|one| matches!(one, Read::Content(_))) {
        return Ok(read);
    }
    let errors = read.iter().filter_map(|one| match one {
        Read::Failed { error, .. } => Some(error.as_str()),
        Read::Content(_) => None,
    });
    Err(error!("no file was read: {}", errors.collect::<Vec<_>>().join("; ")))
}

/// Shares of a limit for files of these sizes: a small file is read as a whole, and larger ones share the rest equally.
fn shares(sizes: &[u64], limit: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|index| sizes[*index]);
    let (mut shares, mut left) = (vec![0; sizes.len()], limit);
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = sizes[index].min(left / (sizes.len() - done) as u64);
        left -= shares[index];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_whole_and_large_ones_share_the_rest() {
        for (sizes, limit, expected) in [
            (&[10, 1000, 500][..], 210, &[10, 100, 100][..]),
            (&[10, 20, 30], 60, &[10, 20, 30]),
            (&[10, 20, 31], 60, &[10, 20, 30]),
            (&[0, 0, 100], 50, &[0, 0, 50]),
            (&[5, 5], 2, &[1, 1]),
            (&[9, 9, 9], 4, &[1, 1, 2]),
            (&[], 1, &[]),
        ] {
            assert_eq!(shares(sizes, limit), expected, "{sizes:?}");
        }
    }
}
