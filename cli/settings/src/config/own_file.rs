//! Files that give rights and that the host names, such as rules for people: they are read only if no other user, nor a group,
//! can write them.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::Context;
use toolcrib_base::input;
use toolcrib_base::render::Advice;

use super::place;

/// Reads the text of a regular file with at most `max` bytes.
///
/// # Errors
///
/// The file cannot be read, is too large or no regular file, or another user or its group can write it.
pub fn own_text(path: &Path, max: u64) -> anyhow::Result<String> {
    let unreadable = || format!("cannot read `{}`", path.display());
    // Opening a pipe would wait for its writer.
    if !path.metadata().with_context(unreadable)?.is_file() {
        return Err(io::Error::other("not a regular file")).with_context(unreadable);
    }
    let file = File::open(path).with_context(unreadable)?;
    place::check_rights(&file)
        .map_err(|reason| Advice::new(format!("cannot use `{}`: {reason}", path.display()), place::OWNER_HINT))?;
    input::open_file(file, max).with_context(unreadable)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_its_group_or_every_user_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.toml");
        fs::write(&path, "x").unwrap();
        for (mode, reason) in [
            (0o600, None),
            (0o644, None),
            (0o660, Some("its group can write the file")),
            (0o666, Some("every user can write the file")),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = own_text(&path, 10);
            match reason {
                None => assert_eq!(read.unwrap(), "x", "{mode:o}"),
                Some(reason) => assert!(read.unwrap_err().to_string().contains(reason), "{mode:o}"),
            }
        }
    }
}
