//! Files that give rights and that the host names, such as rules for people: they are read only if no other user can write them.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::Context;
use toolcrib_base::input;
use toolcrib_base::render::Advice;

use super::layer_kind::LayerKind;
use super::place;

/// Reads the text of a regular file with at most `max` bytes.
///
/// # Errors
///
/// The file cannot be read, is too large or no regular file, or another user can write it.
pub fn own_text(path: &Path, max: u64) -> anyhow::Result<String> {
    let unreadable = || format!("cannot read `{}`", path.display());
    // Opening a pipe would wait for its writer.
    if !path.metadata().with_context(unreadable)?.is_file() {
        return Err(io::Error::other("not a regular file")).with_context(unreadable);
    }
    let file = File::open(path).with_context(unreadable)?;
    place::check(&file, path, LayerKind::User)
        .map_err(|reason| Advice::new(format!("cannot use `{}`: {reason}", path.display()), place::OWNER_HINT))?;
    input::open_file(file, max).with_context(unreadable)
}
