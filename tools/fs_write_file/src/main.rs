//! Tool `fs_write_file`: writes a whole file at once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Encoding, Error, FailureKind, PathContext, error, files};

const MAX_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    create_parents: bool,
    #[serde(default = "yes")]
    overwrite: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct Output {
    path: String,
    bytes: usize,
    /// `true` if nothing was at the path before.
    created: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, content, encoding, create_parents, overwrite } = args;
    let bytes = encoding.decode("content", &content)?;
    if bytes.len() > MAX_BYTES {
        return Err(error!("`content` is {} bytes, over the limit of {MAX_BYTES}", bytes.len()));
    }
    if create_parents && let Some(parent) = Path::new(&path).parent() {
        fs::create_dir_all(parent).at("make the folder", parent)?;
    }
    let created = fs::symlink_metadata(&path).is_err();
    let written = if overwrite { files::replace(&path, &bytes) } else { write_new(&path, &bytes) };
    written.map_err(|error| with_parent(error, Path::new(&path)))?;
    Ok(Output { path, bytes: bytes.len(), created })
}

/// Names the option that creates the folder of a file if this folder is missing.
fn with_parent(error: Error, path: &Path) -> Error {
    match files::missing_parent(path).filter(|_| error.kind() == FailureKind::NotFound) {
        Some(parent) => Error::not_found(format!(
            "write `{}`: no such folder `{}`; set `create_parents` to true to create it",
            path.display(),
            parent.display()
        )),
        None => error,
    }
}

/// Writes a file that must not exist yet. Only the host can check this without a race, when it creates the file.
fn write_new(path: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).at("write", path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // The first failure is the one to report.
        let _ = fs::remove_file(path);
    }
    written.at("write", path)
}
