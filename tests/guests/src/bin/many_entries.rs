//! Creates entries of one kind in its folder until the host refuses or the maximum is reached, and reports their
//! number.

use std::fs::{self, File};
use std::io;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{error, json};
use wasip2::filesystem::preopens::get_directories;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Kind: `file`, `folder`, `link` or `hard_link`.
    kind: String,
    most: usize,
    /// `true` to remove each entry again.
    #[serde(default)]
    removes: bool,
    /// `true` to fail if the host refuses.
    #[serde(default)]
    fails: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        for made in 0..args.most {
            let name = format!("{}-{made}", args.kind);
            if let Err(error) = make(&args, &name) {
                if args.fails {
                    return Err(error!("could not make {name}: {error}"));
                }
                return Ok(json!({ "made": made, "error": error.to_string() }));
            }
        }
        Ok(json!({ "made": args.most }))
    })
}

fn make(args: &Args, name: &str) -> io::Result<()> {
    match args.kind.as_str() {
        "file" => drop(File::create(name)?),
        "folder" => fs::create_dir(name)?,
        "link" => {
            let folders = get_directories();
            let (folder, _) = folders.first().ok_or_else(|| io::Error::other("no folder"))?;
            folder.symlink_at("note", name).map_err(|code| io::Error::other(code.name()))?;
        }
        "hard_link" => fs::hard_link("note", name)?,
        other => return Err(io::Error::other(format!("unknown kind `{other}`"))),
    }
    match (args.removes, args.kind.as_str()) {
        (false, _) => Ok(()),
        (true, "folder") => fs::remove_dir(name),
        (true, _) => fs::remove_file(name),
    }
}
