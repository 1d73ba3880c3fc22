//! Tool `fs_mkdirp`: creates a folder and its missing parent folders.

use std::fs;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
}

#[derive(Serialize)]
struct Output {
    path: String,
    /// `true` if the folder did not exist before.
    created: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let path = args.path;
    let created = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => false,
        Ok(_) => {
            return Err(error!("make the folder `{path}`: there is a file of that name"));
        }
        Err(_) => {
            fs::create_dir_all(&path).at("make the folder", &path)?;
            true
        }
    };
    Ok(Output { path, created })
}
