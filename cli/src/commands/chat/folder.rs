//! Question at the start of a chat without a granted folder: may the tools use the current one? The answer is for this chat
//! alone, and nothing is stored.

use std::io::{self, IsTerminal};
use std::path::Path;

use toolcrib::tool::Access;
use toolcrib_base::folders::home_folder;
use toolcrib_base::render;
use toolcrib_settings::permission::{KeyAnswer, ask_key};
use toolcrib_sources::options::Sources;

const QUESTION: &str = "Let the tools read this folder in this chat? [y]es, [w]rite too, or [N]o? ";

/// Outcome of the question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The chat begins, with or without the folder.
    Settled,
    Interrupted,
}

/// Asks a person at the terminal about the current folder, and grants it. Nobody is asked if a flag or a setting names a
/// folder, if the tools are not the built-in ones, or if the folder is too wide.
pub(super) async fn offer(sources: &mut Sources) -> anyhow::Result<Offer> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_terminal || sources.names_folders() || !sources.are_builtin() {
        return Ok(Offer::Settled);
    }
    let folder = std::env::current_dir()?.canonicalize()?;
    let home = home_folder().and_then(|home| home.canonicalize().ok());
    if is_wide(&folder, home.as_deref()) {
        return Ok(Offer::Settled);
    }
    let access = match ask_key(QUESTION, &['y', 'w']).await {
        KeyAnswer::Key('w') => Access::Write,
        KeyAnswer::Key(_) => Access::Read,
        KeyAnswer::No => return Ok(Offer::Settled),
        KeyAnswer::Interrupted => return Ok(Offer::Interrupted),
    };
    sources.also_allow(folder, access);
    let flag = if access == Access::Write { "--allow-write=." } else { "--allow-read=." };
    render::hint(&format!("`{flag}` grants this folder without the question"));
    Ok(Offer::Settled)
}

/// Returns `true` for the root, and for the home folder and each folder above it: only a flag grants these. Without a known home
/// folder every folder is one.
fn is_wide(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.is_none_or(|home| home.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_the_home_folder_and_those_above_it_are_too_wide() {
        let home = Some(Path::new("/home/ada"));
        for (folder, wide) in
            [("/", true), ("/home", true), ("/home/ada", true), ("/home/ada/desk", false), ("/home/adam", false)]
        {
            assert_eq!(is_wide(Path::new(folder), home), wide, "{folder}");
            assert!(is_wide(Path::new(folder), None), "{folder}");
        }
    }
}
