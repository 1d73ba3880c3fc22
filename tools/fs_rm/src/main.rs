//! Tool `fs_rm`: removes files or folders.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error};

/// Maximum number of paths in one call.
const MAX_PATHS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: Paths,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    missing_ok: bool,
}

/// One path, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`path` is neither a path nor a list of paths")]
enum Paths {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output {
    One(Removal),
    Several { paths: Vec<Removal> },
}

#[derive(Serialize)]
struct Removal {
    path: String,
    removed: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, recursive, missing_ok } = args;
    match path {
        Paths::One(path) => {
            let is_there = check(&path, recursive, missing_ok)?;
            remove(path, is_there).map(Output::One)
        }
        Paths::Several(paths) => remove_all(paths, recursive, missing_ok).map(|paths| Output::Several { paths }),
    }
}

/// Removes several paths; none of them if one cannot be removed as far as is known before.
fn remove_all(paths: Vec<String>, recursive: bool, missing_ok: bool) -> Result<Vec<Removal>, Error> {
    if paths.is_empty() || paths.len() > MAX_PATHS {
        return Err(error!("`path` lists {} paths, not between 1 and {MAX_PATHS}", paths.len()));
    }
    for path in &paths {
        check(path, recursive, missing_ok).map_err(|error| error!("{error}; nothing was removed"))?;
    }
    let mut removals: Vec<Removal> = Vec::new();
    for path in paths {
        // One of the paths before may hold this one.
        let removal = match check(&path, recursive, true) {
            Ok(is_there) => remove(path, is_there),
            Err(error) => Err(error),
        };
        match removal {
            Ok(removal) => removals.push(removal),
            Err(error) => {
                let removed = removals.iter().filter(|removal| removal.removed).map(|removal| &*removal.path);
                let removed: Vec<String> = removed.map(|path| format!("`{path}`")).collect();
                let removed = if removed.is_empty() { "nothing".to_owned() } else { removed.join(", ") };
                return Err(error!("{error}; removed before: {removed}"));
            }
        }
    }
    Ok(removals)
}

/// Checks that a path can be removed; returns `false` if it is missing and that is fine.
fn check(path: &str, recursive: bool, missing_ok: bool) -> Result<bool, Error> {
    if is_root(path) {
        return Err(error!("remove `{path}`: it is the granted folder itself"));
    }
    let found = match fs::symlink_metadata(path) {
        Err(error) if missing_ok && error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.at("remove", path)?,
    };
    if found.is_dir() && !recursive {
        return Err(error!("remove `{path}`: it is a folder; set `recursive` to remove it with everything in it"));
    }
    Ok(true)
}

fn remove(path: String, is_there: bool) -> Result<Removal, Error> {
    if is_there {
        let is_folder = fs::symlink_metadata(&path).at("remove", &path)?.is_dir();
        if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.at("remove", &path)?;
    }
    Ok(Removal { path, removed: is_there })
}

/// `true` if a path names the granted folder: `.`, `/`, `a/..`.
fn is_root(path: &str) -> bool {
    let depth = Path::new(path).components().fold(0_usize, |depth, part| match part {
        Component::Normal(_) => depth + 1,
        Component::ParentDir => depth.saturating_sub(1),
        _ => depth,
    });
    depth == 0 && !path.starts_with("..")
}
