//! Files on Windows, for every crate that keeps files for the host: a file's owner and access list, its identity and
//! its path by its handle, and renames past files that another program holds open.
//!
//! Everything that can be decided from bytes and text alone is compiled and tested on every system. The calls of the system
//! exist on Windows only, each in a function of a few lines.

pub mod access;
pub mod paths;
pub mod patience;

#[cfg(windows)]
mod handle;
#[cfg(windows)]
mod private;
#[cfg(windows)]
mod user;

#[cfg(windows)]
pub use handle::{FileIdentity, create_in, final_path, identity, is_reparse_point, open_attributes, open_folder, pin};
#[cfg(windows)]
pub use private::{PrivateOptions, check, check_folder, create_folder, persist, persist_new, temporary};
