//! Embeds the SDK for tools into the program, so that a new tool starts with the SDK of the same version: sources,
//! manifests without a workspace, and the locked versions of their dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::replace;

/// Crates, by their folders below the root.
const CRATES: [&str; 2] = ["guest-sdk", "guest-sdk/macro"];
/// Folder of the WIT package; its path relative to the crates stays the same.
const CONTRACT: &str = "wit/tool";
/// Crate that tools depend on.
const ROOT: &str = "toolcrib-guest";
/// Manifest sections that only work in this repository.
const OMITTED_SECTIONS: [&str; 2] = ["[lints]", "[dev-dependencies]"];

/// Writes `sdk.rs`, an array of paths and texts; empty if the SDK is missing.
pub(super) fn gather(root: &Path, out: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    if root.join("tools/Cargo.toml").is_file() {
        let workspace = text(&root.join("tools/Cargo.toml"))?;
        for folder in CRATES.iter().filter(|folder| root.join(folder).is_dir()) {
            let manifest = root.join(folder).join("Cargo.toml");
            let alone = standalone(&text(&manifest)?, &workspace)
                .map_err(|error| format!("{}: {error}", manifest.display()))?;
            files.push((format!("{folder}/Cargo.toml"), write(out, &format!("{folder}/Cargo.toml"), &alone)?));
            sources(root, &root.join(folder).join("src"), &mut files)?;
        }
        sources(root, &root.join(CONTRACT), &mut files)?;
        let lock = reduced_lock(&text(&root.join("tools/Cargo.lock"))?);
        files.push(("Cargo.lock".to_owned(), write(out, "Cargo.lock", &lock)?));
    }
    let line = |(name, path): &(String, PathBuf)| format!("    ({name:?}, include_str!({path:?})),\n");
    let array = format!("[\n{}]\n", files.iter().map(line).collect::<String>());
    replace(&out.join("sdk.rs"), array.as_bytes())
}

/// Adds the files of a source folder, with their paths below the root.
fn sources(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<(), String> {
    for path in entries(folder)? {
        if path.is_dir() {
            sources(root, &path, files)?;
        } else {
            let below = path.strip_prefix(root).map_err(|error| error.to_string())?;
            let name: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            files.push((name.join("/"), path));
        }
    }
    Ok(())
}

/// Entries of a folder, sorted by name for reproducible builds.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = listed().map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

fn write(out: &Path, name: &str, content: &str) -> Result<PathBuf, String> {
    let path = out.join("sdk").join(name);
    let folder = path.parent().ok_or("a file without a folder")?;
    fs::create_dir_all(folder).map_err(|error| format!("cannot create `{}`: {error}", folder.display()))?;
    replace(&path, content.as_bytes())?;
    Ok(path)
}

/// Copies a manifest with the values of its workspace written out.
fn standalone(manifest: &str, workspace: &str) -> Result<String, String> {
    let mut section = "";
    let mut alone = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        if OMITTED_SECTIONS.contains(&section) || line.starts_with("workspace = ") {
            continue;
        }
        let line = match line.strip_suffix(".workspace = true") {
            None => line.to_owned(),
            Some(key) => {
                let inherited = if section == "[package]" { "[workspace.package]" } else { "[workspace.dependencies]" };
                let value = value(workspace, inherited, key).ok_or_else(|| format!("`{inherited}` has no `{key}`"))?;
                // Paths are relative to `tools/`; from the outer crate they lead inside.
                format!("{key} = {}", value.replace("../guest-sdk/", ""))
            }
        };
        if line.contains("workspace") || line.contains("\"../") {
            return Err(format!("`{line}` cannot be written out; use `KEY.workspace = true`"));
        }
        alone += &line;
        alone.push('\n');
    }
    Ok(alone.trim_end().to_owned() + "\n")
}

/// Value of a key in a section, as written on its line.
fn value<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('['));
    lines.into_iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// Reduces a lock file to the packages that the SDK needs.
fn reduced_lock(lock: &str) -> String {
    let mut parts = lock.split("[[package]]\n");
    let head = parts.next().unwrap_or_default();
    let packages: Vec<&str> = parts.collect();
    let field = |package: &'_ str, name: &str| {
        let value = package.split(&format!("{name} = \"")).nth(1).and_then(|rest| rest.split('"').next());
        value.unwrap_or_default().to_owned()
    };
    let mut kept = BTreeSet::new();
    let mut open = vec![ROOT.to_owned()];
    while let Some(wanted) = open.pop() {
        // A dependency includes its version if there are several versions.
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        for (at, package) in packages.iter().enumerate() {
            let is_it = field(package, "name") == name && (version.is_empty() || field(package, "version") == version);
            if is_it && kept.insert(at) {
                let list = package.split("dependencies = [\n").nth(1).and_then(|rest| rest.split(']').next());
                let names = list.unwrap_or_default().split('"').skip(1).step_by(2);
                open.extend(names.map(str::to_owned));
            }
        }
    }
    let kept: String = kept
        .into_iter()
        .map(|at| format!("[[package]]\n{}\n", packages[at].trim_end_matches('\n')))
        .collect::<Vec<_>>()
        .join("\n");
    format!("{head}{kept}")
}
