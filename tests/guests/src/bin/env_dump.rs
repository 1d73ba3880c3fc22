//! Reports its whole environment: variables, arguments, working folder, and the names of the granted folders.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;

use toolcrib_guest::{Value, json};
use wasip2::filesystem::preopens::get_directories;

fn main() -> ExitCode {
    toolcrib_guest::command(|_: Value| {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let env: BTreeMap<_, _> = env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let args: Vec<_> = env::args_os().map(lossy).collect();
        let folder = env::current_dir().map(|folder| folder.display().to_string());
        let preopens: Vec<_> = get_directories().into_iter().map(|(_, name)| name).collect();
        Ok(json!({ "env": env, "args": args, "cwd": folder.ok(), "preopens": preopens }))
    })
}
