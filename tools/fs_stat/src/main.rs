//! Tool `fs_stat`: describes a path: its existence, type and size.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read};
use std::process::ExitCode;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib_guest::{Error, PathContext, error, files};

const MAX_HASHED_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    sha256: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output {
    Absent { path: String, exists: bool },
    Present(Description),
}

#[derive(Serialize)]
struct Description {
    path: String,
    exists: bool,
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// Target of a symbolic link, as written in the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, follow, sha256 } = args;
    let found = if follow { fs::metadata(&path) } else { fs::symlink_metadata(&path) };
    let found = match found {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Output::Absent { path, exists: false });
        }
        found => found.at("describe", &path)?,
    };
    let target = match found.is_symlink() {
        true => Some(fs::read_link(&path).at("describe", &path)?.to_string_lossy().into_owned()),
        false => None,
    };
    let sha256 = if sha256 { Some(digest(&path, &found)?) } else { None };
    Ok(Output::Present(Description {
        exists: true,
        kind: kind(&found),
        size: found.len(),
        modified: modified(&found),
        target,
        sha256,
        path,
    }))
}

fn kind(found: &Metadata) -> &'static str {
    if found.is_file() {
        "file"
    } else if found.is_dir() {
        "folder"
    } else if found.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}

/// Modification time in UTC, to the second; `None` if the file system keeps none, or one that cannot be written.
fn modified(found: &Metadata) -> Option<String> {
    let time = found.modified().ok()?;
    // The formatter refuses times before 1970.
    time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

fn digest(path: &str, found: &Metadata) -> Result<String, Error> {
    if !found.is_file() {
        return Err(error!("`sha256` was asked for, but `{path}` is not a file"));
    }
    if found.len() > MAX_HASHED_BYTES {
        return Err(error!("`sha256` was asked for, but `{path}` is over the limit of {MAX_HASHED_BYTES} bytes"));
    }
    let mut file = files::open(path)?.take(MAX_HASHED_BYTES);
    let mut hasher = Sha256::new();
    let mut block = vec![0; 64 * 1024];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(count) => hasher.update(&block[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err::<String, io::Error>(error).at("read", path),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
