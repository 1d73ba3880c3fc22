//! Lists its folder repeatedly and keeps every listing open until the host refuses one; then reports the number of
//! listings.

use std::process::ExitCode;

use toolcrib_guest::{Value, json};
use wasip2::filesystem::preopens::get_directories;

fn main() -> ExitCode {
    toolcrib_guest::command(|_: Value| {
        let folders = get_directories();
        let mut kept = Vec::new();
        while let Some(Ok(listing)) = folders.first().map(|(folder, _)| folder.read_directory()) {
            kept.push(listing);
        }
        Ok(json!({ "listings": kept.len() }))
    })
}
