//! Writes to its folder in one of several ways, again and again, until the host refuses or it was enough; then it fails
//! with the error, or reports it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Value, error, json};

/// What is written at once.
const CHUNK: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// See [`write`].
    way: String,
    /// The most that it writes.
    most: usize,
    /// Whether it reports the refusal as an answer.
    #[serde(default)]
    copes: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let mut written = 0;
        while written < args.most {
            match write(&args.way, written) {
                Ok(()) => written += CHUNK,
                Err(error) if args.copes => return Ok(json!({ "written": written, "error": error.to_string() })),
                Err(error) => return Err(error!("disk full, as it seems: {error}")),
            }
        }
        Ok::<Value, _>(json!({ "written": written }))
    })
}

fn write(way: &str, written: usize) -> io::Result<()> {
    let chunk = [b'x'; CHUNK];
    match way {
        // One file that grows.
        "append" => OpenOptions::new().append(true).create(true).open("grown")?.write_all(&chunk),
        // Many files.
        "files" => File::create(format!("file-{written}"))?.write_all(&chunk),
        // One file, written over and over.
        "rewrite" => File::create("rewritten")?.write_all(&chunk),
        // One file that grows and is cut off.
        "cut" => {
            let mut file = File::create("cut")?;
            file.write_all(&chunk)?;
            file.set_len(0)
        }
        // A file of nothing, which grows by its size alone.
        "size" => {
            OpenOptions::new().write(true).create(true).truncate(false).open("sized")?.set_len((written + CHUNK) as u64)
        }
        other => Err(io::Error::other(format!("unknown way `{other}`"))),
    }
}
