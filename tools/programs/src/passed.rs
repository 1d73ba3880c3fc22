//! Checks of the interpreters that have passed, by the digest of their sources, their compiler and their command. An interpreter
//! takes minutes to compile and rarely changes, so a check that has passed with all of these need not run again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Group, cargo, read, sources};

/// List of the checks, below the root of the repository.
const LIST: &str = "tools/programs/passed.txt";
/// First lines of the list.
const HEAD: &str = "\
# Written by `.ci/run`: checks that have passed, each with its group of programs and the digest of its sources, its compiler and
# its command. A check runs again when one of them changes, and in `.ci/long`.
";
/// Settings of the lints.
const LINTS: &str = ".clippy.toml";

/// Returns `true` if this command has passed with the present sources of a group and the present compiler.
pub(crate) fn has(root: &Path, group: Group, command: &[&str]) -> Result<bool, String> {
    let line = line(&digest(root, group, command)?, group, command);
    Ok(lines(root)?.contains(&line))
}

/// Adds a command that has passed, in the place of an earlier pass of it.
pub(crate) fn add(root: &Path, group: Group, command: &[&str]) -> Result<(), String> {
    let end = line("", group, command);
    let mut lines = lines(root)?;
    lines.retain(|line| !line.ends_with(&end));
    lines.push(line(&digest(root, group, command)?, group, command));
    lines.sort_by(|one, other| {
        one.split_once(' ').map(|(_, rest)| rest).cmp(&other.split_once(' ').map(|(_, rest)| rest))
    });
    let list = list(root);
    let text = format!("{HEAD}{}\n", lines.join("\n"));
    fs::write(&list, text).map_err(|error| format!("cannot write `{}`: {error}", list.display()))
}

fn list(root: &Path) -> PathBuf {
    root.join(LIST)
}

/// Lines of the list; without a file, nothing has passed.
fn lines(root: &Path) -> Result<Vec<String>, String> {
    let list = list(root);
    let text = if list.is_file() { read(&list)? } else { Vec::new() };
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
}

fn line(digest: &str, group: Group, command: &[&str]) -> String {
    format!("{digest} {} {}", group.name(), command.join(" "))
}

fn digest(root: &Path, group: Group, command: &[&str]) -> Result<String, String> {
    let lints = sources::of_bytes(&read(&root.join(LINTS))?);
    let parts = [sources::digest(root, group)?, cargo::compiler()?, lints, command.join(" ")];
    Ok(sources::of_bytes(parts.join("\n").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_counts_for_its_sources_group_and_command_alone() {
        let root = std::env::temp_dir().join(format!("toolcrib-passed-{}", std::process::id()));
        for group in [Group::Python, Group::JavaScript] {
            for source in sources::of(&root, group) {
                fs::create_dir_all(source.parent().unwrap()).unwrap();
                fs::write(source, "one").unwrap();
            }
        }
        fs::write(root.join(LINTS), "").unwrap();
        let [test, lint] = [["cargo", "test"], ["cargo", "clippy"]];
        assert_eq!(has(&root, Group::Python, &test), Ok(false));
        add(&root, Group::Python, &test).unwrap();
        add(&root, Group::JavaScript, &lint).unwrap();
        assert_eq!(has(&root, Group::Python, &test), Ok(true));
        assert_eq!(has(&root, Group::Python, &lint), Ok(false));
        assert_eq!(has(&root, Group::JavaScript, &test), Ok(false));
        let source = sources::of(&root, Group::Python).into_iter().find(|path| path.ends_with("tools/python")).unwrap();
        fs::write(&source, "two").unwrap();
        assert_eq!(has(&root, Group::Python, &test), Ok(false));
        add(&root, Group::Python, &test).unwrap();
        assert_eq!(has(&root, Group::Python, &test), Ok(true));
        assert_eq!(lines(&root).unwrap().len(), 2, "the earlier pass is replaced");
        fs::write(root.join(LINTS), "other").unwrap();
        assert_eq!(has(&root, Group::JavaScript, &lint), Ok(false));
        fs::remove_dir_all(root).unwrap();
    }
}
