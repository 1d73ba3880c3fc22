//! Files that settle what later sessions may do, which no tool writes, replaces or moves inside a folder that it may
//! otherwise write: those with certain names, and the sources, programs and settings of this session, whatever their
//! names are. Here it is judged; the sandbox asks at each operation.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use super::location::{Identity, Location, identity};

/// Names that settle something, each with the names of the folders above it that make it do so, and what it settles. They
/// stand for all below them. The list holds what is followed or run merely because somebody starts a session, opens an
/// editor, enters the folder or uses version control there, and not what is run when somebody asks for it: tools that
/// write a program, a `Makefile` or a test are what people want. A name that begins with `*` stands for all that end so.
const SETTLING: [(&[&str], &str); 25] = [
    (&["tools.json"], "what later sessions may do"),
    (&["toolcrib.toml"], "what later sessions may do"),
    (&["harness.md"], "what later sessions may do"),
    (&[".harness"], "what later sessions may do"),
    // Where manifests have their programs, also those of manifests that this session does not know.
    (&["tools", "bin"], "what later sessions run"),
    (&[".git", "hooks"], "what version control runs"),
    (&[".git", "config"], "what version control runs"),
    (&[".git", "config.worktree"], "what version control runs"),
    // The same of repositories inside this one, and where a repository looks for the rest of itself.
    (&[".git", "modules"], "what version control runs"),
    (&[".git", "worktrees"], "what version control runs"),
    (&[".git", "commondir"], "what version control runs"),
    (&[".hg", "hgrc"], "what version control runs"),
    (&[".envrc"], "what shells run on entering the folder"),
    (&["mise.toml"], "what shells run on entering the folder"),
    (&[".mise.toml"], "what shells run on entering the folder"),
    (&["mise.local.toml"], "what shells run on entering the folder"),
    (&[".mise.local.toml"], "what shells run on entering the folder"),
    (&[".mise"], "what shells run on entering the folder"),
    (&[".config", "mise"], "what shells run on entering the folder"),
    (&[".config", "mise.toml"], "what shells run on entering the folder"),
    (&["mise", "config.toml"], "what shells run on entering the folder"),
    (&[".vscode"], "what editors run"),
    (&[".idea"], "what editors run"),
    (&[".zed"], "what editors run"),
    (&["*.code-workspace"], "what editors run"),
];
/// A folder that tools may fill, but neither make, nor move, nor replace: with it its hooks would come.
const REPOSITORY: (&str, &str) = (".git", "what version control runs");
/// Endings of the names of tools in a source that is a folder without a manifest.
const TOOL_ENDINGS: [&str; 3] = [".wasm", ".md", ".tool.json"];
/// The most names above an entry that decide with its own what it settles: one less than the longest of those above.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no folder is looked through there"))]
pub(crate) const MAX_ABOVE: usize = 1;
/// How often it is asked for the turn to move something.
const TURN_AGAIN: Duration = Duration::from_millis(1);
/// The most files and folders that are looked through of what the host keeps for itself.
const MAX_KEPT: usize = 100_000;

/// The turn of whoever makes or moves links and folders, one for all runtimes of the process: they can share folders.
static MOVES: Mutex<()> = Mutex::new(());

/// Tells what a file settles that has such a path, in words that follow "settles".
pub fn settled_by(path: &Path) -> Option<&'static str> {
    let names = folded_names(path);
    let holds = |sequence: &[&str]| names.windows(sequence.len()).any(|window| is_alike(window, sequence));
    let by_name = SETTLING.iter().find(|(sequence, _)| holds(sequence)).map(|(_, settles)| *settles);
    by_name.or_else(|| names.last().is_some_and(|last| last == REPOSITORY.0).then_some(REPOSITORY.1))
}

/// Returns true where names below such a path settle something because of its own. No link and no folder that is moved
/// gets such a name: what is made below it meanwhile or elsewhere would settle something unseen.
pub(crate) fn would_settle_below(path: &Path) -> bool {
    let names = folded_names(path);
    let ends =
        |above: &[&str]| names.len().checked_sub(above.len()).is_some_and(|from| is_alike(&names[from..], above));
    SETTLING.iter().any(|(sequence, _)| (1..sequence.len()).any(|length| ends(&sequence[..length])))
}

/// The names of a path as they are compared; `..` takes back the name before it.
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

/// Compares folded names with as many of the table.
fn is_alike(names: &[String], sequence: &[&str]) -> bool {
    names.iter().zip(sequence).all(|(name, listed)| match listed.strip_prefix('*') {
        Some(ending) => name.ends_with(ending),
        None => name == listed,
    })
}

/// Returns true where a link with such a target would lead out of a folder, from so many folders below it. Names of
/// folders before a `..` count as out, for they could be links themselves.
pub(crate) fn is_link_out(target: &Path, depth: usize) -> bool {
    let mut parts = target.components().skip_while(|part| *part == Component::CurDir).peekable();
    let mut up = 0;
    while parts.next_if_eq(&Component::ParentDir).is_some() {
        up += 1;
    }
    up > depth || parts.any(|part| !matches!(part, Component::Normal(_)))
}

/// A name as the least strict file system compares it: without case, ignorable characters, what an alternate stream adds
/// and what ends in a dot or a space.
fn folded(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    if name.is_ascii() {
        return name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    }
    let is_ignorable = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    let kept: String = name.chars().filter(|c| !is_ignorable(c)).collect();
    // Some letters have a capital one that is another's, such as the long s.
    kept.to_uppercase().to_lowercase().trim_end_matches(['.', ' ']).to_owned()
}

/// Files and folders that the tools of a runtime may not change in any folder, and those that the host keeps for itself.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    /// Entries by their folder and their folded name: what is protected, the folders above it, and links that lead there.
    entries: HashSet<(Identity, String)>,
    /// Files as they were when they were protected; each may have been replaced since.
    files: HashSet<Identity>,
    /// The paths that are protected.
    paths: Vec<PathBuf>,
    /// Folders in which every file is a source.
    below: Vec<PathBuf>,
    /// Folders in which every file is a source that is named like a tool.
    listed: HashSet<Identity>,
    /// Folders and files of the host's own.
    own: Vec<PathBuf>,
    /// Files among those that have another name besides, once somebody had to know; `None` where they are too many.
    kept: OnceLock<Option<HashSet<Identity>>>,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
impl Protected {
    /// Protects what the host keeps for itself from being read under another name.
    pub(crate) fn new(own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: own.into_iter().collect(), ..Self::default() }
    }

    /// Protects a file or folder where its path stands, on the way, and where it leads.
    pub(crate) fn add(&mut self, path: &Path) {
        let Ok(path) = std::path::absolute(path) else { return };
        system::trail(&path, &mut self.entries, &mut self.files);
        self.paths.push(path);
    }

    /// Protects all that is or comes below a folder, wherever links lead that its path has.
    pub(crate) fn add_below(&mut self, folder: &Path) {
        self.add(folder);
        self.below.extend(folder.canonicalize().ok().filter(|real| !self.below.contains(real)));
    }

    /// Protects, for a folder that tools may write and those above it, what has a name there that settles something and is
    /// a link, where it leads.
    pub(crate) fn add_links(&mut self, folder: &Path) {
        let Ok(folder) = std::path::absolute(folder) else { return };
        let listed = SETTLING.iter().map(|(sequence, _)| *sequence).filter(|sequence| !sequence[0].starts_with('*'));
        for (above, names) in folder.ancestors().flat_map(|above| listed.clone().map(move |names| (above, names))) {
            let mut path = above.to_path_buf();
            let mut is_linked = false;
            for name in names {
                path.push(name);
                is_linked |= path.is_symlink();
            }
            if is_linked {
                self.add_below(&path);
            }
        }
    }

    /// Protects what is or becomes a tool in a folder.
    pub(crate) fn add_listed(&mut self, folder: &Location) {
        self.listed.extend(folder.identity());
    }

    /// Returns true where an entry of a folder is not to be made, replaced, moved or removed. `path` is its path on the host.
    pub(crate) fn holds_entry(&self, folder: Identity, path: &Path) -> bool {
        let name = folded(&path.file_name().unwrap_or_default().to_string_lossy());
        self.is_named(path)
            || self.listed.contains(&folder) && TOOL_ENDINGS.iter().any(|ending| name.ends_with(ending))
            || self.entries.contains(&(folder, name))
    }

    /// Returns true where an open file is not to be written, whatever the name by which it was opened.
    /// `is_linked` says that it has several.
    pub(crate) fn holds_file(&self, file: Identity, is_linked: bool, path: &Path) -> bool {
        // Another file may be at a protected path by now, and another may have got the number of the one that was there.
        let is_there = || self.paths.iter().any(|path| identity(path) == Some(file));
        self.is_named(path)
            || path.parent().and_then(identity).is_some_and(|folder| self.holds_entry(folder, path))
            || (is_linked || self.files.contains(&file)) && is_there()
    }

    /// Returns true where the names of a path alone protect it.
    pub(crate) fn is_named(&self, path: &Path) -> bool {
        settled_by(path).is_some() || self.below.iter().any(|folder| path.starts_with(folder))
    }

    /// Returns true where a folder that is protected with all below it is at such a path or below it.
    pub(crate) fn has_below(&self, path: &Path) -> bool {
        self.below.iter().any(|folder| folder.starts_with(path))
    }

    /// Returns true where a file with several names is one that the host keeps for itself, or could be.
    pub(crate) fn is_own(&self, file: Identity) -> bool {
        let kept = self.kept.get_or_init(|| system::kept(&self.own, MAX_KEPT));
        kept.as_ref().is_none_or(|kept| kept.contains(&file))
    }
}

/// Waits until nobody else makes or moves a link or a folder, so that none is made where it leads out or settles something
/// once it was moved; `None` where that lasts too long.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
pub(crate) fn moving(until: Instant) -> Option<MutexGuard<'static, ()>> {
    loop {
        match MOVES.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(TURN_AGAIN),
        }
    }
}

#[cfg(unix)]
mod system {
    use std::collections::HashSet;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, FileType, statat};

    use crate::policy::location::{Identity, identity_of};
    use crate::policy::walk::{top, walk};

    use super::folded;

    /// Notes each name on the way to a path, and the file at its end.
    pub(super) fn trail(path: &Path, entries: &mut HashSet<(Identity, String)>, files: &mut HashSet<Identity>) {
        let Ok(from) = top() else { return };
        // What is not there ends the way, and the name that is missing was noted.
        let _ = walk(from, path, |step| {
            entries.extend(identity_of(step.folder).map(|folder| (folder, folded(&step.name.to_string_lossy()))));
            files.extend(step.file());
            Ok(())
        });
    }

    /// Files that have several names, among those at and below these paths; `None` where there are more than `most`.
    pub(super) fn kept(own: &[PathBuf], most: usize) -> Option<HashSet<Identity>> {
        let (mut left, mut kept, mut looked) = (own.to_vec(), HashSet::new(), 0);
        while let Some(path) = left.pop() {
            looked += 1;
            if looked > most {
                return None;
            }
            let Ok(about) = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile if about.st_nlink > 1 => drop(kept.insert(Identity::of(&about))),
                FileType::Directory => {
                    left.extend(path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()));
                }
                _ => {}
            }
        }
        Some(kept)
    }
}

#[cfg(not(unix))]
mod system {
    use std::collections::HashSet;
    use std::path::{Path, PathBuf};

    use crate::policy::location::Identity;

    /// Entries have no identity here: names protect them.
    pub(super) fn trail(_: &Path, _: &mut HashSet<(Identity, String)>, _: &mut HashSet<Identity>) {}

    pub(super) fn kept(_: &[PathBuf], _: usize) -> Option<HashSet<Identity>> {
        Some(HashSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settles_later_sessions_is_known_under_every_spelling() {
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
            ".zed/tasks.json",
            "a/My.code-workspace",
            "a/../.git/objects/../hooks/x",
        ] {
            assert!(settled_by(Path::new(path)).is_some(), "{path}");
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
            ".hg/store",
            "mise/readme.md",
            ".git/../hooks",
        ] {
            assert_eq!(settled_by(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_name_above_one_that_settles_something_is_known() {
        for path in [".git", "a/.Config", "mise", ".hg"] {
            assert!(would_settle_below(Path::new(path)), "{path}");
        }
        for path in [".git/x", "config", ".vscode", "tools.json", "", "mise/x"] {
            assert!(!would_settle_below(Path::new(path)), "{path}");
        }
        let longest = SETTLING.iter().map(|(sequence, _)| sequence.len()).max();
        assert_eq!(longest, Some(MAX_ABOVE + 1));
    }

    #[cfg(unix)]
    #[test]
    fn of_more_files_than_are_looked_through_every_one_could_be_the_hosts_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let own = [folder.path().to_path_buf()];
        assert!(system::kept(&own, 3).is_some_and(|kept| kept.is_empty()));
        assert!(system::kept(&own, 2).is_none());
        let cut = Protected { kept: OnceLock::from(None), ..Protected::default() };
        assert!(cut.is_own(identity(folder.path()).unwrap()));
    }

    #[test]
    fn a_turn_is_not_waited_for_past_the_end_of_the_call() {
        let turn = moving(Instant::now() + Duration::from_secs(60));
        assert!(turn.is_some());
        assert!(std::thread::spawn(|| moving(Instant::now()).is_none()).join().unwrap());
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
