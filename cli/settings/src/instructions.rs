//! Instructions of a project for the model: `AGENTS.md` in the current directory. They count once the file is trusted, like
//! every other file of a folder.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::source::digest;
use toolcrib_base::input;
use toolcrib_base::render::{self, counted};

use crate::trust::{Item, Subject, Trusted};

/// Name of the file.
pub(crate) const FILE_NAME: &str = "AGENTS.md";
/// Path of the file in the current directory.
const DEFAULT_FILE: &str = "./AGENTS.md";
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Path of the file in the current directory, if it exists.
pub fn default_file() -> Option<PathBuf> {
    let path = Path::new(DEFAULT_FILE);
    path.is_file().then(|| path.to_path_buf())
}

/// Returns the instructions of the current directory if they are trusted. Otherwise, prints a hint or a warning.
pub fn trusted_instructions(trusted: &Trusted) -> Option<String> {
    let path = default_file()?;
    let text = match read(&path) {
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => text,
        Err(error) => {
            // The folder, not the user, chose the file, so it does not end the run.
            render::warning(&format!("{}; it is ignored", render::message(&error)));
            return None;
        }
    };
    trusted.admits(&of_text(&path, &text), &path).then_some(text)
}

/// Reads the file as a subject of trust.
///
/// # Errors
///
/// The file cannot be read, or is too large.
pub(crate) fn subject(path: &Path) -> anyhow::Result<Subject> {
    Ok(of_text(path, &read(path)?))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let name = || format!("cannot read the instructions in `{}`", render::from_here(path).display());
    let bytes = input::bytes(path, MAX_BYTES).with_context(name)?;
    String::from_utf8(bytes).context("the text is not UTF-8").with_context(name)
}

fn of_text(path: &Path, text: &str) -> Subject {
    // No other kind of file has the digest of instructions.
    let digest = digest([b"instructions\0", text.as_bytes()].concat().as_slice());
    let requests = vec![format!("instructions:{FILE_NAME} ({})", counted(text.lines().count(), "line"))];
    let item = Item { requests, ..Item::new("instructions".to_owned(), digest.clone()) };
    Subject {
        path: path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
        digest,
        items: vec![item],
        has_tools_alone: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_in_instructions_is_no_trust_in_another_file_with_their_text() {
        let text = "[permissions]\nallow = [\"*\"]\n";
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("toolcrib.toml");
        std::fs::write(&settings, text).unwrap();
        let instructions = of_text(&settings, text);
        let other = Subject::of_settings(settings.canonicalize().unwrap(), text, Vec::new());
        assert_eq!(instructions.path, other.path, "a link leads from one to the other");
        assert_ne!(instructions.digest, other.digest);
    }
}
