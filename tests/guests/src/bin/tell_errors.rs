//! Causes every kind of error that names a path, and reports the texts, with every other value that reveals its
//! location.

use std::fs;
use std::process::ExitCode;

use toolcrib_guest::{Value, json};

fn main() -> ExitCode {
    toolcrib_guest::command(|_: Value| {
        let mut told = Vec::new();
        for path in
            ["", "/", ".", "..", "../secret", "/etc/passwd", "absent", "absolute_link", "up/x", "note/x", "a\0b"]
        {
            told.push(format!("{path:?} read: {:?}", fs::read(path).map(|bytes| bytes.len())));
            told.push(format!("{path:?} write: {:?}", fs::write(path, "").err()));
            told.push(format!("{path:?} list: {:?}", fs::read_dir(path).err()));
            told.push(format!("{path:?} link: {:?}", fs::read_link(path)));
            told.push(format!("{path:?} real: {:?}", fs::canonicalize(path)));
            told.push(format!("{path:?} stat: {:?}", fs::symlink_metadata(path).err()));
            told.push(format!("{path:?} rename: {:?}", fs::rename(path, "../away").err()));
        }
        told.push(format!("program: {:?}", std::env::current_exe()));
        told.push(format!("folder: {:?}", std::env::current_dir()));
        Ok(json!({ "told": told }))
    })
}
