//! Tool `fs_append_file`: appends to the end of a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Encoding, Error, PathContext, error};

const MAX_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    must_exist: bool,
}

#[derive(Serialize)]
struct Output {
    path: String,
    /// Number of appended bytes.
    bytes: usize,
    /// Size of the file afterwards.
    size: u64,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, content, encoding, must_exist } = args;
    let bytes = encoding.decode("content", &content)?;
    if bytes.len() > MAX_BYTES {
        return Err(error!("`content` is {} bytes, over the limit of {MAX_BYTES}", bytes.len()));
    }
    let mut file = OpenOptions::new().append(true).create(!must_exist).open(&path).at("append to", &path)?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).at("append to", &path)?;
    let size = file.metadata().at("append to", &path)?.len();
    Ok(Output { path, bytes: bytes.len(), size })
}
