//! Published builds of CPython: fetched by the user's own tools, which run nothing of them, and checked by their digests.

mod numeric;
mod plain;

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::language::{Language, NUMERIC, PLAIN};

/// Build of CPython.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// With the standard library.
    Plain,
    /// With packages to compute.
    Numeric,
}

/// Files of a build.
pub(crate) struct Package {
    /// Module of CPython.
    pub(crate) module: Vec<u8>,
    /// Archive of the standard library.
    pub(crate) archive: Vec<u8>,
}

impl Build {
    /// Describes its language.
    pub(crate) fn language(self) -> &'static Language {
        match self {
            Self::Plain => &PLAIN,
            Self::Numeric => &NUMERIC,
        }
    }

    /// Fetches its package into a folder.
    ///
    /// # Errors
    ///
    /// The package cannot be fetched, or its content is another one.
    pub(crate) fn fetch(self, folder: &Path) -> Result<Package, String> {
        match self {
            Self::Plain => plain::fetch(folder),
            Self::Numeric => numeric::fetch(folder),
        }
    }
}

/// Returns bytes if they have a digest.
fn checked(name: &str, bytes: Vec<u8>, digest: &str) -> Result<Vec<u8>, String> {
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == digest { Ok(bytes) } else { Err(format!("`{name}` has sha256:{found}, not sha256:{digest}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_bytes_is_refused() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checked("file", b"abc".to_vec(), abc), Ok(b"abc".to_vec()));
        assert!(checked("file", b"abd".to_vec(), abc).is_err_and(|error| error.contains(abc)));
    }
}
