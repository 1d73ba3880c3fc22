//! Writes to its folder in one of several ways, repeatedly, until the host refuses or the maximum is reached; then
//! fails with the error, or reports it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Value, error, json};

/// Size of one write, in bytes.
const CHUNK: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Way to write: see [`write`].
    way: String,
    /// Maximum bytes to write.
    most: usize,
    /// `true` to report the refusal as an answer.
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
        // One file that is rewritten.
        "rewrite" => File::create("rewritten")?.write_all(&chunk),
        // One file that grows and is truncated.
        "cut" => {
            let mut file = File::create("cut")?;
            file.write_all(&chunk)?;
            file.set_len(0)
        }
        // An empty file that grows by its size alone.
        "size" => {
            OpenOptions::new().write(true).create(true).truncate(false).open("sized")?.set_len((written + CHUNK) as u64)
        }
        other => Err(io::Error::other(format!("unknown way `{other}`"))),
    }
}
