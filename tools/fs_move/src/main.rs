//! Tool `fs_move`: moves or renames a file or folder.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error, files};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    from: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    create_parents: bool,
}

#[derive(Serialize)]
struct Output {
    from: String,
    to: String,
    /// `true` if something at `to` was replaced.
    replaced: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { from, to, overwrite, create_parents } = args;
    fs::symlink_metadata(&from).at("move", &from)?;
    let (source, target) = (files::from_root(&from), files::from_root(&to));
    if source == target {
        return Err(error!("`from` and `to` are the same path, `{to}`"));
    }
    if target.starts_with(&source) {
        return Err(error!("move `{from}`: `{to}` is inside it"));
    }
    let replaced = fs::symlink_metadata(&to).is_ok();
    if replaced && !overwrite {
        return Err(error!("move to `{to}`: it already exists; set `overwrite` to replace it"));
    }
    if create_parents && let Some(parent) = Path::new(&to).parent() {
        fs::create_dir_all(parent).at("make the folder", parent)?;
    }
    if let Some(parent) = files::missing_parent(Path::new(&to)) {
        let parent = parent.display();
        let message = format!("move to `{to}`: no such folder `{parent}`; set `create_parents` to true to create it");
        return Err(Error::not_found(message));
    }
    fs::rename(&from, &to).at("move to", &to)?;
    Ok(Output { from, to, replaced })
}
