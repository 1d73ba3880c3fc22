//! Installed bundles: a folder's lock, the comparison of a release with the installed one, the user's own records, and
//! the steps that change them.

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
mod options;
mod records;
mod refusal;
mod release;
mod source;
mod steps;
mod version;

pub use access::{FetchedRelease, fetch};
pub use available::{AvailableBundle, AvailableBundles};
pub(crate) use bundle_folder::BundleFolder;
pub use comparison::{Case, Change, Operation, Verdict};
pub use difference::lines as difference;
pub use lock::{LockedBundle, signer_name};
pub use lock_file::{LOCK_FILE, LockFile};
pub use lock_reader::name;
pub use newest::{Newest, newest};
pub use options::{AgreementOptions, PlaceOptions, ReleaseOptions, available_here, installer};
pub use records::{InstallRecords, Installation, installation};
pub use refusal::{Code, Refusal};
pub use release::{Release, ReleasedTool};
pub use source::BundleSource;
pub use steps::Installer;
