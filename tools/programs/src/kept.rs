//! The kept programs, and the list of digests beside them: of the sources of each group, and of each file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Group, Programs, cargo, read, sources};

/// Folder of the kept programs, below the root of the repository.
pub(crate) const FOLDER: &str = "tools/programs/kept";
/// Name of the list.
const LIST: &str = "digests.txt";
/// First lines of the list.
const HEAD: &str = "\
# Written by `cargo run -p toolcrib-programs --example programs -- record`: the compiler, the digest of the sources of each
# group of programs, and the digest of each file.
";
/// Key of the compiler in the list.
const COMPILER: &str = "compiler";

/// List of the kept programs.
pub(crate) struct Kept {
    folder: PathBuf,
    entries: BTreeMap<String, String>,
}

impl Kept {
    /// Reads the list; without a file, nothing is kept.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let folder = root.join(FOLDER);
        let list = folder.join(LIST);
        let text = if list.is_file() { read(&list)? } else { Vec::new() };
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let entries =
            lines.filter_map(|line| line.split_once(' ')).map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(Self { entries: entries.collect(), folder })
    }

    /// Version of the compiler, as `rustc --version` prints it.
    pub(crate) fn compiler(&self) -> &str {
        self.entries.get(COMPILER).map_or("", String::as_str)
    }

    /// Returns `true` if the programs of a group were compiled from sources with this digest.
    pub(crate) fn is_of(&self, group: Group, digest: &str) -> bool {
        self.entries.get(group.name()).is_some_and(|kept| kept == digest)
    }

    /// Reads programs, and refuses one that is not the recorded one.
    pub(crate) fn programs(&self, names: &[String]) -> Result<Programs, String> {
        let mut programs = Programs::new();
        for name in names {
            let file = file(name);
            let path = self.folder.join(&file);
            let program = read(&path)?;
            if self.entries.get(&file) != Some(&sources::of_bytes(&program)) {
                let cure = "restore it, or run `cargo run -p toolcrib-programs --example programs -- record`";
                return Err(format!("`{}` is not the file that was recorded in `{LIST}`: {cure}", path.display()));
            }
            programs.insert(name.clone(), program);
        }
        Ok(programs)
    }
}

fn file(name: &str) -> String {
    format!("{name}.wasm")
}

/// Replaces the kept programs and the list: each group has the digest of its sources.
pub(crate) fn write(root: &Path, groups: &[(Group, String, Programs)]) -> Result<(), String> {
    let folder = root.join(FOLDER);
    let failed = |error: std::io::Error| format!("cannot write `{}`: {error}", folder.display());
    let mut list = format!("{HEAD}{COMPILER} {}\n", cargo::compiler()?);
    for (group, digest, _) in groups {
        list += &format!("{} {digest}\n", group.name());
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    for (name, program) in groups.iter().flat_map(|(_, _, programs)| programs) {
        fs::write(folder.join(file(name)), program).map_err(failed)?;
        list += &format!("{} {}\n", file(name), sources::of_bytes(program));
    }
    fs::write(folder.join(LIST), list).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_programs_are_those_of_their_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let changed = crate::Repository::at(&root).unwrap().changed().unwrap();
        let names: Vec<&str> = changed.into_iter().map(Group::name).collect();
        let record = "record them: cargo run -p toolcrib-programs --example programs -- record";
        assert!(names.is_empty(), "sources changed since their programs were recorded: {names:?}; {record}");
    }

    #[test]
    fn a_changed_program_is_refused() {
        let root = std::env::temp_dir().join(format!("toolcrib-kept-{}", std::process::id()));
        let programs = Programs::from([("a".to_owned(), b"one".to_vec())]);
        write(&root, &[(Group::Tools, "digest".to_owned(), programs.clone())]).unwrap();
        let kept = Kept::read(&root).unwrap();
        let names = ["a".to_owned()];
        assert!(kept.is_of(Group::Tools, "digest") && !kept.is_of(Group::Tools, "other"));
        assert!(!kept.is_of(Group::Interpreter, "digest"));
        assert_eq!(kept.programs(&names), Ok(programs));
        fs::write(root.join(FOLDER).join("a.wasm"), "two").unwrap();
        let refused = kept.programs(&names).unwrap_err();
        assert!(refused.contains("a.wasm` is not the file that was recorded"), "{refused}");
        fs::remove_dir_all(root).unwrap();
    }
}
