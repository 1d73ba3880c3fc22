//! Sources of the kept programs, and their digest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::{Group, read};

/// Sources of the inner build.
const OF_THE_BUILD: [&str; 2] = ["tools/programs/src/cargo.rs", "tools/programs/src/staging.rs"];
/// Sources that the tools and the interpreter of scripts share: the workspace, the SDK and the contracts.
const SHARED: [&str; 8] = [
    "tools/Cargo.lock",
    "tools/Cargo.toml",
    "guest-sdk/Cargo.toml",
    "guest-sdk/src",
    "guest-sdk/macro",
    "wit/command",
    "wit/script",
    "wit/tool",
];
/// Contract and shared crate of the interpreters of programs that call tools.
const OF_LANGUAGES: [&str; 2] = ["tools/code_guest", "wit/code"];
/// Crate that only the interpreter of JavaScript has.
const OF_JAVASCRIPT: [&str; 1] = ["tools/code_image"];
/// Crate of the interpreter, and the crate that takes its snapshot.
const OF_THE_INTERPRETER: [&str; 2] = ["tools/starlark", "tools/snapshot"];
/// Folders in `tools` with other crates than tools.
const NO_TOOLS: [&str; 8] =
    ["code_guest", "code_image", "cpython", "javascript", "programs", "python", "snapshot", "starlark"];

/// Files and folders with the sources of a group.
pub(crate) fn of(root: &Path, group: Group) -> Vec<PathBuf> {
    let (shared, own): (&[&str], &[&str]) = match group {
        Group::Tools => (&SHARED, &[]),
        Group::Interpreter => (&SHARED, &OF_THE_INTERPRETER),
        Group::Python => (&[], &OF_LANGUAGES),
        Group::JavaScript => (&OF_JAVASCRIPT, &OF_LANGUAGES),
    };
    let workspace = group.own_workspace();
    let all = OF_THE_BUILD.iter().chain(shared).chain(own).chain(&workspace);
    let mut paths: Vec<PathBuf> = all.map(|path| root.join(path)).collect();
    if group == Group::Tools {
        let folders = entries(&root.join("tools")).unwrap_or_default().into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.join("Cargo.toml").is_file() && !NO_TOOLS.contains(&&*name)
        });
        paths.extend(folders);
        paths.push(root.join("tools/tools.json"));
    }
    paths
}

/// Returns the digest of the names and contents of all sources of a group. Line ends count alike, since version control may
/// convert them.
pub(crate) fn digest(root: &Path, group: Group) -> Result<String, String> {
    let mut files = Vec::new();
    for path in of(root, group) {
        collect(&path, &mut files)?;
    }
    let mut named = Vec::new();
    for path in files {
        let below = path.strip_prefix(root).map_err(|error| error.to_string())?;
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        named.push((parts.join("/"), path));
    }
    named.sort();
    let mut hash = Sha256::new();
    for (name, path) in named {
        let text = without_returns(&read(&path)?);
        for part in [name.as_bytes(), &text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Digest of bytes, as hexadecimal text.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let ends_line = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    (0..bytes.len()).filter(|at| !ends_line(*at)).map(|at| bytes[at]).collect()
}

/// Adds the files at and below a path. Build products, kept programs and hidden files are no sources.
pub(crate) fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in entries(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != "target" && name != "kept" && !name.starts_with('.') {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_count_alike() {
        assert_eq!(without_returns(b"a\r\nb\rc\n\r"), b"a\nb\rc\n\r");
    }

    #[test]
    fn each_source_counts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tools = of(&root, Group::Tools);
        for (path, is_source) in [
            ("calculate", true),
            ("tools.json", true),
            ("starlark", false),
            ("python", false),
            ("javascript", false),
            ("programs", false),
        ] {
            assert_eq!(tools.contains(&root.join("tools").join(path)), is_source, "{path}");
        }
        for group in Group::ALL {
            assert!(of(&root, group).iter().all(|path| path.exists()), "{}", group.name());
        }
        assert_ne!(digest(&root, Group::Tools), digest(&root, Group::Interpreter));
    }
}
