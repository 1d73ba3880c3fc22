//! Opens and reads one path many times, and counts the contents and the errors.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{error, json};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    times: usize,
    /// `true` to open for writing, which creates a missing file, and to write its own name.
    #[serde(default)]
    writes: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let folders = get_directories();
        let (folder, _) = folders.first().ok_or_else(|| error!("no folder"))?;
        let (open, flags) = match args.writes {
            true => (OpenFlags::CREATE, DescriptorFlags::READ | DescriptorFlags::WRITE),
            false => (OpenFlags::empty(), DescriptorFlags::READ),
        };
        let (mut read, mut errors) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
        for _ in 0..args.times {
            let opened = folder.open_at(PathFlags::SYMLINK_FOLLOW, &args.path, open, flags).and_then(|file| {
                if args.writes {
                    file.write(b"open_often", 0)?;
                }
                file.read(64, 0)
            });
            match opened {
                Ok((bytes, _)) => *read.entry(String::from_utf8_lossy(&bytes).into_owned()).or_default() += 1,
                Err(code) => *errors.entry(code.name()).or_default() += 1,
            }
        }
        Ok(json!({ "read": read, "errors": errors }))
    })
}
