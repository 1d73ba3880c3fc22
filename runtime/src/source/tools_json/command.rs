//! The rule for `command[0]`: a relative program lies in `./tools/bin/` beside its manifest, an absolute one anywhere.

use std::path::{Path, PathBuf};

use crate::source::files;

/// Resolves `command[0]` to the path of its program, before `.wasm` is appended.
///
/// # Errors
///
/// The format's own message, without the name of the entry.
pub(super) fn resolve(program: &str, folder: &Path) -> Result<PathBuf, String> {
    let raw = program.replace('\\', "/");
    if is_absolute(&raw) && files::is_bundled(folder) {
        return Err(format!("command[0] is an absolute path, and the programs of a bundle lie in it (got {raw:?})"));
    }
    if is_absolute(&raw) {
        return Ok(PathBuf::from(raw));
    }
    let clean = clean(&raw);
    if clean == ".." || clean.starts_with("../") {
        return Err(format!("command[0] must not start with '..' or escape tools/bin (got {raw:?})"));
    }
    let inside = clean.strip_prefix("tools/bin/");
    match inside {
        Some(_) if raw.starts_with("./tools/bin/") || !raw.starts_with("./") => Ok(folder.join(&clean)),
        None if raw.starts_with("./tools/bin/") => Err(format!(
            "command[0] escapes ./tools/bin after normalization (got {raw:?} -> {:?})",
            format!("./{clean}")
        )),
        _ => Err("relative command[0] must start with ./tools/bin/".to_owned()),
    }
}

/// Returns the guest's arguments: the entry's arguments, with the folder of an absolute program removed.
pub(super) fn guest_argv(mut argv: Vec<String>) -> Vec<String> {
    let raw = argv[0].replace('\\', "/");
    if is_absolute(&raw) {
        argv[0] = raw.rsplit('/').next().unwrap_or_default().to_owned();
    }
    argv
}

/// Returns `true` if a path is absolute on any operating system, so that a manifest has one meaning on all of them.
fn is_absolute(path: &str) -> bool {
    let drive = path.as_bytes();
    path.starts_with('/') || (drive.len() > 2 && drive[0].is_ascii_alphabetic() && drive[1] == b':' && drive[2] == b'/')
}

/// Normalizes a path lexically.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_tools_bin_resolves_beside_its_manifest() {
        for program in ["./tools/bin/x", "tools/bin/x", r".\tools\bin\x", "./tools/bin/./x", "./tools/bin/y/../x"] {
            assert_eq!(resolve(program, Path::new("/m")), Ok(PathBuf::from("/m/tools/bin/x")), "{program}");
        }
    }

    #[test]
    fn a_program_elsewhere_is_refused_with_the_formats_words() {
        let starts = "relative command[0] must start with ./tools/bin/";
        let dots = "command[0] must not start with '..' or escape tools/bin (got ";
        let escapes = "command[0] escapes ./tools/bin after normalization (got ";
        for (program, text) in [
            ("x", starts.to_owned()),
            ("", starts.to_owned()),
            ("./x", starts.to_owned()),
            ("./other/../tools/bin/x", starts.to_owned()),
            ("tools/bin/../x", starts.to_owned()),
            ("tools/bin", starts.to_owned()),
            ("../x", format!("{dots}\"../x\")")),
            (r"..\x", format!("{dots}\"../x\")")),
            ("./tools/bin/../../../x", format!("{dots}\"./tools/bin/../../../x\")")),
            ("./tools/bin/../hack", format!("{escapes}\"./tools/bin/../hack\" -> \"./tools/hack\")")),
            ("./tools/bin/", format!("{escapes}\"./tools/bin/\" -> \"./tools/bin\")")),
        ] {
            assert_eq!(resolve(program, Path::new("/m")), Err(text), "{program}");
        }
    }

    #[test]
    fn the_guest_never_sees_the_folder_of_an_absolute_program() {
        let argv = guest_argv(vec!["/home/someone/x".into(), "--flag".into()]);
        assert_eq!(argv, ["x", "--flag"]);
        assert_eq!(guest_argv(vec![r"C:\Users\someone\x.exe".into()]), ["x.exe"]);
        assert_eq!(guest_argv(vec!["./tools/bin/x".into()]), ["./tools/bin/x"]);
    }
}
