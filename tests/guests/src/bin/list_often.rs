//! Starts several listings of its folder at once, reads one entry of each, then lists the whole folder repeatedly, and
//! reports the number of entries.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{error, json};
use wasip2::filesystem::preopens::get_directories;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    at_once: usize,
    times: usize,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let folders = get_directories();
        let (folder, _) = folders.first().ok_or_else(|| error!("no folder"))?;
        let mut begun = Vec::new();
        for _ in 0..args.at_once {
            let listing = folder.read_directory().map_err(|code| error!("{}", code.name()))?;
            listing.read_directory_entry().map_err(|code| error!("{}", code.name()))?;
            begun.push(listing);
        }
        let mut seen = 0_u64;
        for _ in 0..args.times {
            let listing = folder.read_directory().map_err(|code| error!("{}", code.name()))?;
            while listing.read_directory_entry().map_err(|code| error!("{}", code.name()))?.is_some() {
                seen += 1;
            }
        }
        Ok(json!({ "seen": seen }))
    })
}
