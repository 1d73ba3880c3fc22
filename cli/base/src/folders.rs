//! Folders of the user for the program's own files.

#[cfg(not(windows))]
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::render::Advice;
#[cfg(windows)]
use crate::windows::known_folder;

/// Name of the program's folders.
const NAME: &str = "toolcrib";

/// Folders of the user for the program's own files, which may be missing.
pub struct UserFolders {
    /// Files that can be made again.
    pub cache: PathBuf,
    /// Settings.
    pub config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) state: PathBuf,
}

/// Returns the user's folders; `None` without a home directory.
#[cfg(not(any(target_os = "macos", windows)))]
pub fn user_folders() -> Option<UserFolders> {
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
pub fn user_folders() -> Option<UserFolders> {
    let library = home_folder()?.join("Library");
    let support = library.join("Application Support").join(NAME);
    let cache = library.join("Caches").join(NAME);
    Some(UserFolders { cache, config: support.clone(), data: support.clone(), state: support })
}

/// Returns the user's folders; `None` if Windows does not know them.
#[cfg(windows)]
pub fn user_folders() -> Option<UserFolders> {
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
pub fn state_folder(name: &str) -> Option<PathBuf> {
    Some(user_folders()?.state.join(name))
}

/// Returns the folder of installed bundles.
pub fn bundles_folder() -> Option<PathBuf> {
    Some(user_folders()?.data.join("bundles"))
}

/// Names the home directory in command line options: a shell replaces a `~` at the start of an argument, and leaves the
/// one in `--tools=~/crib` as it is. Arguments after `--` stay.
pub fn with_home(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut is_option = true;
    let named = |argument: OsString| {
        is_option &= argument != "--";
        let text = argument.to_str().filter(|text| is_option && text.starts_with("--"));
        let Some((name, value)) = text.and_then(|text| text.split_once('=')) else { return argument };
        match in_home(value) {
            Some(path) => {
                let mut named = OsString::from(format!("{name}="));
                named.push(path);
                named
            }
            None => argument,
        }
    };
    arguments.into_iter().map(named).collect()
}

/// Returns the path that a text means by `~` or `~/` at its start; `None` if it has neither, or nobody has a home directory.
pub fn in_home(text: &str) -> Option<PathBuf> {
    match text.strip_prefix('~')? {
        "" => home_folder(),
        below => home_folder().zip(below.strip_prefix('/')).map(|(home, below)| home.join(below)),
    }
}

/// Returns the user's home folder.
#[cfg(not(windows))]
pub fn home_folder() -> Option<PathBuf> {
    env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// Returns the user's home folder.
#[cfg(windows)]
pub fn home_folder() -> Option<PathBuf> {
    known_folder::profile()
}

/// Error of a user without a home directory.
pub fn no_home() -> anyhow::Error {
    Advice::new("no home directory was found", "set `HOME`").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_is_named_in_values_of_options() {
        let home = home_folder().unwrap().display().to_string();
        let given =
            ["x", "--tools=~/crib", "--media=~", "--text=a~/b", "--name=~ada", "~/x", "-o=~/x", "--", "--tools=~/y"];
        let wanted =
            ["x", &format!("--tools={home}/crib"), &format!("--media={home}"), "--text=a~/b", "--name=~ada", "~/x"];
        let expanded = with_home(given.map(OsString::from));
        assert_eq!(expanded[..6], wanted.map(OsString::from));
        assert_eq!(expanded[6..], ["-o=~/x", "--", "--tools=~/y"].map(OsString::from));
    }
}
