//! Protected files in writable folders, which tools may not write, replace or move because they control later sessions:
//! files with certain names, and the sources, programs and settings of this session under any name. The sandbox checks
//! them at each operation.

#[cfg(unix)]
#[path = "protected_unix.rs"]
mod system;
#[cfg(windows)]
#[path = "protected_windows.rs"]
mod system;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use crate::tool::names::{canonical, folded};

use super::autostart;
use super::identity::Identity;
use super::location::{Location, identity};

/// Suffixes of tool files in a source that is a folder without a manifest.
const TOOL_SUFFIXES: [&str; 3] = [".wasm", ".md", ".tool.json"];
/// Interval between two attempts to take the move lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of files and folders that are searched in the host's own data.
const MAX_SEARCHED: usize = 100_000;

/// Lock for creating and moving links and folders, shared by all runtimes of the process because they can share
/// folders.
static MOVE_LOCK: Mutex<()> = Mutex::new(());

/// Describes what a file with such a path controls, such as `what later sessions may do`; `None` if it is not protected
/// by its name.
pub fn controlled_by(path: &Path) -> Option<&'static str> {
    autostart::controls(&folded_names(path))
}

/// Returns `true` if names below such a path would be protected because of it. Links and moved folders may not get such
/// a name, because their content would become protected without a check.
pub(crate) fn protects_names_below(path: &Path) -> bool {
    folded_names(path).last().is_some_and(|name| autostart::has_names_below(name))
}

/// Lists the names of a path in their folded form; `..` removes the previous name.
fn folded_names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(folded(&name.to_string_lossy())),
            Component::ParentDir => drop(names.pop()),
            _ => {}
        }
    }
    names
}

/// Returns `true` if a link with this target, at this depth below a folder, could lead out of the folder. A name before
/// a `..` counts as leading out, because it could be a link itself.
pub(crate) fn is_link_out(target: &Path, depth: usize) -> bool {
    let mut parts = target.components().skip_while(|part| *part == Component::CurDir).peekable();
    let mut up = 0;
    while parts.next_if_eq(&Component::ParentDir).is_some() {
        up += 1;
    }
    up > depth || parts.any(|part| !matches!(part, Component::Normal(_)))
}

/// Files and folders that the tools of a runtime may not change in any folder, and the host's own data.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    /// Protected entries by folder and folded name, including the folders above them and links to them.
    entries: HashSet<(Identity, String)>,
    /// Files at the time at which they were protected; they may have been replaced since.
    files: HashSet<Identity>,
    /// Protected paths.
    paths: Vec<PathBuf>,
    /// Folders that are protected with everything below them.
    below: Vec<PathBuf>,
    /// Folders in which files with the suffix of a tool are sources.
    listed: HashSet<Identity>,
    /// Folders and files of the host's own data.
    own: Vec<PathBuf>,
    /// Files among the host's own data with more than one name, computed on first use; `None` if they are unknown.
    linked_own: OnceLock<Option<HashSet<Identity>>>,
}

impl Protected {
    /// Protects the host's own data from access under another name.
    pub(crate) fn new(own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: own.into_iter().collect(), ..Self::default() }
    }

    /// Protects a file or folder, the folders and links on its path, and its target.
    pub(crate) fn add(&mut self, path: &Path) {
        self.add_all([path]);
    }

    /// Protects paths like [`Protected::add`]. The folder of many files is resolved once if they follow one another.
    pub(crate) fn add_all<'p>(&mut self, paths: impl IntoIterator<Item = &'p Path>) {
        let mut recorded = system::RecordedPaths::new(&mut self.entries, &mut self.files);
        for path in paths {
            let Ok(path) = std::path::absolute(path) else { continue };
            recorded.add(&path);
            self.paths.push(path);
        }
    }

    /// Protects a folder and everything that is or will be below it, after links on its path are resolved.
    pub(crate) fn add_below(&mut self, folder: &Path) {
        self.add(folder);
        self.below.extend(canonical(folder).ok().filter(|real| !self.below.contains(real)));
    }

    /// Protects the targets of links with protected names in a writable folder and in those above it.
    pub(crate) fn add_links(&mut self, folder: &Path) {
        let Ok(folder) = std::path::absolute(folder) else { return };
        for above in folder.ancestors() {
            for (first, seconds) in autostart::listed() {
                let path = above.join(first);
                // Most names are missing, which is one question to the system.
                let Ok(found) = path.symlink_metadata() else { continue };
                for second in seconds {
                    let below = second.map(|second| path.join(second));
                    let is_linked = found.is_symlink() || below.as_ref().is_some_and(|below| below.is_symlink());
                    if is_linked {
                        self.add_below(below.as_ref().unwrap_or(&path));
                    }
                }
            }
        }
    }

    /// Protects all existing and future tool files in a folder.
    pub(crate) fn add_listed(&mut self, folder: &Location) {
        self.listed.extend(folder.identity());
    }

    /// Returns `true` if an entry of a folder may not be created, replaced, moved or removed. `path` is its path on the
    /// host.
    pub(crate) fn holds_entry(&self, folder: Identity, path: &Path) -> bool {
        let name = folded(&path.file_name().unwrap_or_default().to_string_lossy());
        self.is_named(path)
            || self.listed.contains(&folder) && TOOL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
            || self.entries.contains(&(folder, name))
    }

    /// Returns `true` if an open file may not be written, whatever name it was opened by. `is_linked` is
    /// `true` if the file has several names.
    pub(crate) fn holds_file(&self, file: Identity, is_linked: bool, path: &Path) -> bool {
        // A protected path may have another file by now, and the identity of a removed file may be reused.
        let is_at_protected_path = || self.paths.iter().any(|path| identity(path) == Some(file));
        self.is_named(path)
            || path.parent().and_then(identity).is_some_and(|folder| self.holds_entry(folder, path))
            || (is_linked || self.files.contains(&file)) && is_at_protected_path()
    }

    /// Returns `true` if a path is protected by its names alone.
    pub(crate) fn is_named(&self, path: &Path) -> bool {
        controlled_by(path).is_some() || self.below.iter().any(|folder| path.starts_with(folder))
    }

    /// Returns `true` if a folder that is protected with everything below it is at such a path or below it.
    pub(crate) fn has_below(&self, path: &Path) -> bool {
        self.below.iter().any(|folder| folder.starts_with(path))
    }

    /// Returns `true` if a file with several names is, or could be, part of the host's own data.
    pub(crate) fn is_own(&self, file: Identity) -> bool {
        let linked = self.linked_own.get_or_init(|| linked_files(&self.own, MAX_SEARCHED));
        linked.as_ref().is_none_or(|linked| linked.contains(&file))
    }
}

/// Finds the files with several names at and below these paths; `None` if there are more than `max` files, or one of them cannot
/// be judged.
fn linked_files(own: &[PathBuf], max: usize) -> Option<HashSet<Identity>> {
    let (mut left, mut linked, mut searched) = (own.to_vec(), HashSet::new(), 0);
    while let Some(path) = left.pop() {
        searched += 1;
        if searched > max {
            return None;
        }
        match system::search(&path, &mut left, &mut linked) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
            _ => {}
        }
    }
    Some(linked)
}

/// Waits for the lock for creating and moving links and folders, so that no link is created in a folder that is moved
/// at the same time; `None` if the deadline passes.
pub(crate) fn lock_moves(deadline: Instant) -> Option<MutexGuard<'static, ()>> {
    loop {
        match MOVE_LOCK.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_name_is_known_under_every_spelling() {
        for path in [
            "tools.json",
            "/a/b/TOOLS.JSON",
            "sub/Tools.json",
            "tool\u{17f}.json",
            "tools.json.",
            "tools.json::$DATA",
            "tools\u{200c}.json",
            ".harness/tools/x.md",
            "Harness.md",
            "toolcrib.toml ",
            ".git",
            ".GIT",
            "x/.git/hooks/pre-commit",
            ".git/modules/x/hooks/post-checkout",
            ".git/config",
            ".envrc",
            ".config/mise/config.toml",
            ".vscode/tasks.json",
            ".Idea",
            ".config/mise.toml",
            "a/mise/config.toml",
            ".mise.local.toml",
            ".hg/hgrc",
            ".hg/hgrc-not-shared",
            ".hg/requires",
            ".hg/sharedpath",
            ".hg",
            ".jj/repo/config.toml",
            ".sl/config",
            ".svn/hooks/x",
            ".envrc.local",
            ".miSe.Dev.local.toml",
            "mise.staging.toml",
            ".config/mise/conf.d/a.toml",
            ".tool-versions",
            "CLAUDE.md",
            "claude.local.md",
            ".claude/settings.json",
            ".cursor/mcp.json",
            ".codex/config.toml",
            ".gemini/settings.json",
            ".mcp.json",
            "sub/.MCP.json",
            "opencode.json",
            ".opencode/opencode.jsonc",
            "crush.json",
            ".crush.json",
            "AGENTS.md",
            "agents.override.md",
            ".github/copilot-instructions.md",
            ".bashrc",
            ".ssh/authorized_keys",
            ".config/git/config",
            ".dir-locals-2.el",
            ".nvim.lua",
            ".zed/tasks.json",
            "a/My.code-workspace",
            "a/../.git/objects/../hooks/x",
        ] {
            assert!(controlled_by(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "tools.json5",
            "my-tools.json",
            "harness.mdx",
            "git/hooks/x",
            ".git/objects/00/1",
            ".git/HEAD",
            ".github/workflows/ci.yml",
            "config/mise.md",
            "a/tools/json",
            ".config/other.toml",
            ".hg/store/data/x",
            "mise.md",
            "mise/tasks.md",
            "misery.toml",
            "notes/agents.txt",
            "claude.txt",
            ".github/workflows/release.yml",
            ".configuration",
            "config/git",
            "ssh/config",
            "mise/readme.md",
            ".git/../hooks",
        ] {
            assert_eq!(controlled_by(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_parent_of_a_protected_name_is_known() {
        for path in [".git", "a/.Config", "mise", ".hg", ".github", "tools"] {
            assert!(protects_names_below(Path::new(path)), "{path}");
        }
        for path in [".git/x", "config", ".vscode", "tools.json", "", "mise/x"] {
            assert!(!protects_names_below(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn with_a_file_that_cannot_be_judged_every_one_could_be_the_hosts_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("one"), "").unwrap();
        std::fs::hard_link(at("one"), at("two")).unwrap();
        assert!(linked_files(&[at("one"), at("missing"), at("two/below")], 9).is_some_and(|linked| linked.len() == 1));
        assert!(linked_files(&[at("one"), at("no\0name")], 9).is_none());
    }

    #[test]
    fn of_more_files_than_are_searched_every_one_could_be_the_hosts_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let own = [folder.path().to_path_buf()];
        assert!(linked_files(&own, 3).is_some_and(|linked| linked.is_empty()));
        assert!(linked_files(&own, 2).is_none());
        let cut = Protected { linked_own: OnceLock::from(None), ..Protected::default() };
        assert!(cut.is_own(identity(folder.path()).unwrap()));
    }

    #[test]
    fn the_move_lock_is_not_waited_for_past_the_deadline() {
        let guard = lock_moves(Instant::now() + Duration::from_secs(60));
        assert!(guard.is_some());
        assert!(std::thread::spawn(|| lock_moves(Instant::now()).is_none()).join().unwrap());
    }

    #[test]
    fn a_link_leads_out_where_it_climbs_above_its_folder_or_could() {
        for (target, depth) in
            [("/etc", 9), ("..", 0), ("../x", 0), ("../../x", 1), ("./../x", 0), ("a/../../x", 0), ("a/../x", 5)]
        {
            assert!(is_link_out(Path::new(target), depth), "{target} {depth}");
        }
        for (target, depth) in [("x", 0), ("./x/y", 0), ("../x", 1), ("../../x/y", 2), ("", 0)] {
            assert!(!is_link_out(Path::new(target), depth), "{target} {depth}");
        }
    }
}
