//! Folders of the user for the program's own files.

#[cfg(not(windows))]
use std::env;
use std::path::PathBuf;

use crate::mcp::Tokens;
#[cfg(windows)]
use crate::windows::known_folder;

use super::no_home;

/// Name of the program's folders.
const NAME: &str = "toolcrib";

/// Folders of the user for the program's own files, which may be missing.
pub(crate) struct UserFolders {
    pub(crate) cache: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) state: PathBuf,
}

/// Returns the user's folders; `None` without a home directory.
#[cfg(not(any(target_os = "macos", windows)))]
pub(crate) fn user_folders() -> Option<UserFolders> {
    let home = home_folder()?;
    // The specification of XDG says to ignore a relative path.
    let folder = |variable, default| {
        let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| home.join(default)).join(NAME)
    };
    Some(UserFolders {
        cache: folder("XDG_CACHE_HOME", ".cache"),
        config: folder("XDG_CONFIG_HOME", ".config"),
        data: folder("XDG_DATA_HOME", ".local/share"),
        state: folder("XDG_STATE_HOME", ".local/state"),
    })
}

/// Returns the user's folders; `None` without a home directory.
#[cfg(target_os = "macos")]
pub(crate) fn user_folders() -> Option<UserFolders> {
    let library = home_folder()?.join("Library");
    let support = library.join("Application Support").join(NAME);
    let cache = library.join("Caches").join(NAME);
    Some(UserFolders { cache, config: support.clone(), data: support.clone(), state: support })
}

/// Returns the user's folders; `None` if Windows does not know them.
#[cfg(windows)]
pub(crate) fn user_folders() -> Option<UserFolders> {
    let local = known_folder::local_data()?.join(NAME);
    let (cache, data) = (local.join("cache"), local.join("data"));
    Some(UserFolders {
        cache,
        config: known_folder::roaming_data()?.join(NAME).join("config"),
        state: data.clone(),
        data,
    })
}

/// Returns a folder of this name in the user's state folder.
pub(crate) fn state_folder(name: &str) -> Option<PathBuf> {
    Some(user_folders()?.state.join(name))
}

/// Returns the folder of installed bundles.
pub(crate) fn bundles_folder() -> Option<PathBuf> {
    Some(user_folders()?.data.join("bundles"))
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
#[cfg(not(windows))]
pub(crate) fn home_folder() -> Option<PathBuf> {
    env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// Returns the user's home folder.
#[cfg(windows)]
pub(crate) fn home_folder() -> Option<PathBuf> {
    known_folder::profile()
}
