//! Tool `fs_rm`: removes a file or folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    missing_ok: bool,
}

#[derive(Serialize)]
struct Output {
    path: String,
    removed: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, recursive, missing_ok } = args;
    if is_root(&path) {
        return Err(error!("remove `{path}`: it is the granted folder itself"));
    }
    let found = match fs::symlink_metadata(&path) {
        Err(error) if missing_ok && error.kind() == ErrorKind::NotFound => {
            return Ok(Output { path, removed: false });
        }
        found => found.at("remove", &path)?,
    };
    if !found.is_dir() {
        fs::remove_file(&path).at("remove", &path)?;
    } else if recursive {
        fs::remove_dir_all(&path).at("remove", &path)?;
    } else {
        return Err(error!("remove `{path}`: it is a folder; set `recursive` to remove it with everything in it"));
    }
    Ok(Output { path, removed: true })
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
