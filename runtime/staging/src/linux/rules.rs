//! Rules of the caller, asked before each change.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::entry::About;
use super::folder::FolderId;
use crate::types::StagedCall;

/// Rules for the changes of one call. Each refusal is the error that the caller gets.
pub trait Rules {
    /// An entry is about to be created, replaced, moved or removed, in this real folder if it is in one.
    ///
    /// # Errors
    ///
    /// It may not be changed.
    fn entry(&self, folder: Option<&About>, path: &str) -> io::Result<()>;

    /// An entry is about to be changed by this path of the caller, as it was given.
    ///
    /// # Errors
    ///
    /// No entry may be changed by such a path.
    fn request(&self, path: &str) -> io::Result<()>;

    /// The content of a real file is about to change.
    ///
    /// # Errors
    ///
    /// It may not be changed.
    fn file(&self, file: &About, path: &str) -> io::Result<()>;

    /// A link or a folder is about to be placed at a path.
    ///
    /// # Errors
    ///
    /// Names below such a path would be protected, and nobody would have checked them.
    fn placed(&self, path: &str) -> io::Result<()>;

    /// A folder is about to be moved.
    ///
    /// # Errors
    ///
    /// It, or a folder below it, may not be moved.
    fn moved(&self, from: &str, to: &str) -> io::Result<()>;

    /// A file is about to be created by its opening.
    ///
    /// # Errors
    ///
    /// There are too many.
    fn count(&self) -> io::Result<()>;

    /// Returns `true` if a link with this target could lead out of a folder so far above it.
    fn is_link_out(&self, target: &str, depth: usize) -> bool;

    /// Folders that no link may leave.
    fn roots(&self) -> &[FolderId];

    /// Returns `true` if names of entries that a commit moves aside are allowed.
    fn allows_aside(&self) -> bool {
        false
    }

    /// Call that makes the changes, if they are noted as made by one.
    fn call(&self) -> Option<&Arc<StagedCall>>;

    /// Time at which the call ends.
    fn until(&self) -> Option<Instant>;
}
