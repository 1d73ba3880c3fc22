//! Folders of the user for the program's own files.

use std::path::PathBuf;

use directories::{BaseDirs, ProjectDirs};

use crate::mcp::Tokens;

use super::no_home;

/// Returns the user's folders; `None` without a home directory.
pub(crate) fn user_folders() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "toolcrib")
}

/// Returns a folder of this name in the user's state folder.
pub(crate) fn state_folder(name: &str) -> Option<PathBuf> {
    let user = user_folders()?;
    Some(user.state_dir().unwrap_or(user.data_local_dir()).join(name))
}

/// Returns the folder of installed bundles.
pub(crate) fn bundles_folder() -> Option<PathBuf> {
    Some(user_folders()?.data_local_dir().join("bundles"))
}

/// Returns the tokens of clients.
///
/// # Errors
///
/// The user has no home directory.
pub(crate) fn mcp_tokens() -> anyhow::Result<Tokens> {
    state_folder("tokens.json").map(Tokens::file).ok_or_else(no_home)
}

/// Returns the user's home folder.
pub(crate) fn home_folder() -> Option<PathBuf> {
    BaseDirs::new().map(|user| user.home_dir().to_path_buf())
}
