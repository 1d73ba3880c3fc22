//! File versions as parts of a hash.

use std::fs;
use std::hash::{DefaultHasher, Hash};
use std::path::Path;

use toolcrib_base::file_version::FileVersion;

/// Adds the version of a file, if there is one.
pub(super) fn stamp(path: &Path, hash: &mut DefaultHasher) {
    fs::metadata(path).ok().map(|about| FileVersion::of(&about)).hash(hash);
}
