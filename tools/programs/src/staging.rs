//! A copy of the guests' sources in a workspace of their own, for programs that are kept: with all crates below its root, cargo
//! names them by relative paths, and the bytes of a program do not depend on the folder of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{read, sources};

/// Folders and files that are copied, below the root of the repository.
const COPIED: [&str; 4] = ["guest-sdk", "tests/guests", "tools", "wit"];
/// Manifest of the guests' workspace.
const MANIFEST: &str = "tools/Cargo.toml";
const LOCK: &str = "tools/Cargo.lock";

/// Copies the sources to a folder, and returns it.
pub(crate) fn lay_out(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let staged = target.join("recorded/sources");
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(|error| format!("cannot remove `{}`: {error}", staged.display()))?;
    }
    let mut files = Vec::new();
    for path in COPIED {
        sources::collect(&root.join(path), &mut files)?;
    }
    for file in files {
        let below = file.strip_prefix(root).map_err(|error| error.to_string())?;
        let bytes = read(&file)?;
        let is_manifest = below.file_name().is_some_and(|name| name == "Cargo.toml");
        match below.to_string_lossy().replace('\\', "/").as_str() {
            MANIFEST => write(&staged.join("Cargo.toml"), workspace(&String::from_utf8_lossy(&bytes)).as_bytes())?,
            LOCK => write(&staged.join("Cargo.lock"), &bytes)?,
            _ if is_manifest => write(&staged.join(below), member(&String::from_utf8_lossy(&bytes)).as_bytes())?,
            _ => write(&staged.join(below), &bytes)?,
        }
    }
    Ok(staged)
}

/// Manifest of the workspace, moved from `tools` to the folder above it.
fn workspace(manifest: &str) -> String {
    let mut is_list = false;
    let lines = manifest.lines().map(|line| {
        if line == "members = [" || line == "]" {
            is_list = line != "]";
        }
        match line.trim_start().strip_prefix('"') {
            Some(path) if is_list && path.starts_with("../") => format!("    \"{}\n", &path[3..]),
            Some(path) if is_list => format!("    \"tools/{path}\n"),
            _ => format!("{}\n", line.replace("path = \"../", "path = \"")),
        }
    });
    lines.collect()
}

/// Manifest of a member, which finds its workspace above it.
fn member(manifest: &str) -> String {
    manifest.lines().filter(|line| !line.starts_with("workspace = \"")).map(|line| format!("{line}\n")).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().ok_or("a file without a folder")?;
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_below_the_workspace() {
        let manifest = "[workspace]\nmembers = [\n    \"calculate\",\n    \"../guest-sdk\",\n]\n[workspace.dependencies]\n\
                        sdk = { path = \"../guest-sdk\" }\n";
        let moved = "[workspace]\nmembers = [\n    \"tools/calculate\",\n    \"guest-sdk\",\n]\n[workspace.dependencies]\n\
                     sdk = { path = \"guest-sdk\" }\n";
        assert_eq!(workspace(manifest), moved);
        assert_eq!(
            member("[package]\nworkspace = \"../tools\"\nversion.workspace = true\n"),
            "[package]\nversion.workspace = true\n"
        );
    }
}
