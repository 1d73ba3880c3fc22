//! The real folders under a stage. Each is reached by its handle, and no path leads out of it.

use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, ReadDir};
use rustix::io::Errno;

use crate::entry::About;

/// Real folders by their paths.
#[derive(Debug, Default)]
pub(crate) struct Bases(Vec<Base>);

#[derive(Debug)]
struct Base {
    path: String,
    folder: Dir,
}

impl Bases {
    /// Adds a folder; `false` if it is known, with everything below it.
    pub(crate) fn add(&mut self, path: &str, folder: Dir) -> bool {
        let is_known = self.0.iter().any(|base| below(&base.path, path).is_some());
        if !is_known {
            self.0.push(Base { path: path.to_owned(), folder });
        }
        !is_known
    }

    /// Paths of the folders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|base| base.path.as_str())
    }

    /// Finds the folder above a path, and the rest of the path below it.
    pub(crate) fn find<'p>(&self, path: &'p str) -> io::Result<(&Dir, &'p str)> {
        let found = self.0.iter().filter_map(|base| Some((base, below(&base.path, path)?)));
        let (base, rest) = found.max_by_key(|(base, _)| base.path.len()).ok_or(Errno::PERM)?;
        Ok((&base.folder, if rest.is_empty() { "." } else { rest }))
    }

    /// Describes an entry, without following a link; `None` if there is none.
    pub(crate) fn about(&self, path: &str) -> io::Result<Option<About>> {
        let (folder, rest) = self.find(path)?;
        match folder.symlink_metadata(rest) {
            Ok(found) => Ok(Some(About::of(&found))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the target of a link.
    pub(crate) fn link(&self, path: &str) -> io::Result<String> {
        let (folder, rest) = self.find(path)?;
        let target = folder.read_link_contents(rest)?;
        target.into_os_string().into_string().map_err(|_| Errno::ILSEQ.into())
    }

    /// Lists a folder.
    pub(crate) fn list(&self, path: &str) -> io::Result<ReadDir> {
        let (folder, rest) = self.find(path)?;
        folder.read_dir(rest)
    }
}

/// Returns the rest of a path below a folder; empty for the folder itself.
pub(crate) fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(folder)?;
    match folder.ends_with('/') || rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// Joins a folder's path and a name.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.ends_with('/') { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

/// Splits a path into its folder and its name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => ("/", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_folder_by_whole_names() {
        assert_eq!(below("/a", "/a/b/c"), Some("b/c"));
        assert_eq!(below("/a", "/a"), Some(""));
        assert_eq!(below("/", "/a"), Some("a"));
        assert_eq!(below("/a", "/ab"), None);
        assert_eq!((join("/", "a"), join("/a", "b")), ("/a".to_owned(), "/a/b".to_owned()));
        assert_eq!((split("/a"), split("/a/b")), (("/", "a"), ("/a", "b")));
    }
}
