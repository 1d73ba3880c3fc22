//! Installed bundles: the lock of a folder, the comparison of a release with the installed one, the user's own records, and the
//! steps that change them.

mod access;
mod available;
mod bundle_folder;
mod comparison;
#[cfg(test)]
mod comparison_tests;
mod difference;
mod facts;
mod lock;
mod lock_file;
mod lock_reader;
mod newest;
mod records;
mod refusal;
mod release;
mod source;
mod steps;
mod version;

pub(crate) use access::{FetchedRelease, fetch};
pub(crate) use available::AvailableBundles;
pub(crate) use bundle_folder::BundleFolder;
pub(crate) use comparison::{Case, Change, Operation, Verdict};
pub(crate) use difference::lines as difference;
pub(crate) use lock::{LockedBundle, signer_name};
pub(crate) use lock_file::{LOCK_FILE, LockFile};
pub(crate) use lock_reader::name;
pub(crate) use newest::{Newest, newest};
pub(crate) use records::{InstallRecords, Installation, installation};
pub(crate) use refusal::{Code, Refusal};
pub(crate) use release::{Release, ReleasedTool};
pub(crate) use source::BundleSource;
pub(crate) use steps::Installer;
