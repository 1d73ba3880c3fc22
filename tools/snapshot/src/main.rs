//! Takes a snapshot of a component: `toolcrib-snapshot COMPONENT SNAPSHOT`.

#[cfg(feature = "compiled")]
#[path = "compiled.rs"]
mod engine;
#[cfg(not(feature = "compiled"))]
#[path = "interpreted.rs"]
mod engine;

mod component;

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [component, snapshot] = &arguments[..] else {
        eprintln!("usage: toolcrib-snapshot COMPONENT SNAPSHOT");
        return ExitCode::from(2);
    };
    match take(component.as_ref(), snapshot.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn take(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| format!("cannot read `{}`: {error}", from.display()))?;
    let snapshot = component::of_component(&bytes).map_err(|error| format!("`{}`: {error}", from.display()))?;
    fs::write(to, snapshot).map_err(|error| format!("cannot write `{}`: {error}", to.display()))
}
