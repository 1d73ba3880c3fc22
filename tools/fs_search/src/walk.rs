//! Selection and order of the searched files. Reads no file.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolcrib_guest::{Error, error};
use walkdir::{DirEntry, WalkDir};

const MAX_DEPTH: usize = 64;
const MAX_GLOBS: usize = 20;
const MAX_GLOB_BYTES: usize = 200;

pub(crate) struct Filter {
    include: GlobSet,
    exclude: GlobSet,
}

impl Filter {
    pub(crate) fn new(include: &[String], exclude: &[String]) -> Result<Self, Error> {
        Ok(Self { include: globs("include", include)?, exclude: globs("exclude", exclude)? })
    }
}

fn globs(name: &str, patterns: &[String]) -> Result<GlobSet, Error> {
    if patterns.len() > MAX_GLOBS {
        return Err(error!("`{name}` has {} globs, over the limit of {MAX_GLOBS}", patterns.len()));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if pattern.len() > MAX_GLOB_BYTES {
            return Err(error!("a glob in `{name}` is over the limit of {MAX_GLOB_BYTES} bytes"));
        }
        // A glob without a slash matches names in any folder, as in a `.gitignore`.
        let anywhere = if pattern.contains('/') { "" } else { "**/" };
        let glob = GlobBuilder::new(&format!("{anywhere}{pattern}"))
            .literal_separator(true)
            .build()
            .map_err(|error| error!("{name} `{pattern}`: {}", error.kind()))?;
        set.add(glob);
    }
    Ok(set.build()?)
}

/// Lists the files to search, sorted, as paths that another tool call accepts; `None` for an unreadable folder.
pub(crate) fn files(root: &str, filter: &Filter) -> impl Iterator<Item = Option<String>> {
    let below = move |entry: &DirEntry| match entry.depth() {
        0 => entry.file_name().into(),
        _ => entry.path().strip_prefix(root).unwrap_or(entry.path()).to_path_buf(),
    };
    WalkDir::new(root)
        .max_depth(MAX_DEPTH)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(move |entry| entry.depth() == 0 || !filter.exclude.is_match(below(entry)))
        .filter(move |entry| {
            entry.as_ref().map_or(true, |entry| {
                let wanted = filter.include.is_empty() || filter.include.is_match(below(entry));
                entry.file_type().is_file() && wanted
            })
        })
        .map(|entry| {
            let path = entry.ok()?.into_path();
            let path = path.strip_prefix(".").unwrap_or(&path);
            path.to_str().map(String::from)
        })
}
