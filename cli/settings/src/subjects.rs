//! Files that a person can trust: sources of tools, settings files and instructions, each read as a subject.

use std::path::Path;

use toolcrib::policy::review;

use crate::trust::{State, Subject, TrustRecords, Trusted};
use crate::{config, instructions};

/// Extension of settings files.
const SETTINGS: &str = "toml";

/// Reads a source, a settings file by its extension `toml`, or instructions by their name `AGENTS.md`.
///
/// # Errors
///
/// The file cannot be read, or is faulty as a whole.
pub fn read(path: &Path) -> anyhow::Result<Subject> {
    if path.file_name().is_some_and(|name| name == instructions::FILE_NAME) {
        return instructions::subject(path);
    }
    match path.extension().is_some_and(|extension| extension == SETTINGS) {
        true => config::subject(path),
        false => Ok(review(path)?.into()),
    }
}

/// Makes a change of the user's own to a source. A source that is trusted, or that the change creates (`is_new`), is trusted
/// with its new content: everything that was there and at most one part more.
///
/// # Errors
///
/// The errors of the change, and records that cannot be read or written.
pub fn keeping<T>(
    source: &Path,
    records: Option<&TrustRecords>,
    is_new: bool,
    change: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let trusted = Trusted::read(&[], records)?;
    let before = match read(source) {
        Ok(subject) => Some(subject).filter(|subject| trusted.state(subject) == State::Trusted).map(|it| it.items),
        Err(_) => is_new.then(Vec::new),
    };
    let changed = change()?;
    if let (Some(records), Some(before)) = (records, before) {
        let after = read(source)?;
        // Another process may have changed the source meanwhile.
        let is_own = before.iter().all(|item| after.items.contains(item)) && after.items.len() <= before.len() + 1;
        if is_own {
            records.add(&after)?;
        }
    }
    Ok(changed)
}
