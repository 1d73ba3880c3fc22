//! Random trees of files, entries chosen from them, and their descriptions.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Files in a folder, on average.
const IN_A_FOLDER: usize = 12;

/// SplitMix64: the same numbers for the same seed, on every system.
#[derive(Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns `true` in one of so many cases.
    pub(super) fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    /// Returns a text of random length.
    pub(super) fn text(&mut self) -> String {
        let len = if self.one_in(20) { self.below(70_000) } else { self.below(200) };
        let (letter, step) = (self.below(26), self.below(25) + 1);
        (0..len).map(|at| char::from(b'a' + ((letter + at * step) % 26) as u8)).collect()
    }
}

/// Fills a folder: the same seed makes the same entries.
pub(super) fn fill(folder: &Path, files: usize, mut random: Random) {
    let mut folders = vec![String::new()];
    for number in 0..files.div_ceil(IN_A_FOLDER) {
        let above = folders[random.below(folders.len())].clone();
        let path = format!("{above}d{number}/");
        // Not too deep.
        if path.matches('/').count() < 6 {
            fs::create_dir(folder.join(&path)).unwrap();
            folders.push(path);
        }
    }
    let mut made: Vec<String> = Vec::new();
    for number in 0..files {
        let path = format!("{}f{number}", folders[random.below(folders.len())]);
        let at = folder.join(&path);
        match random.below(30) {
            0 if !made.is_empty() => fs::hard_link(folder.join(&made[random.below(made.len())]), at).unwrap(),
            1 => {
                let target = target(&mut random);
                symlink(target, at).unwrap();
                continue;
            }
            _ => {
                fs::write(&at, random.text()).unwrap();
                let mode = [0o644, 0o600, 0o755, 0o664][random.below(4)];
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        made.push(path);
    }
}

/// Target of a link, which leads out of no folder.
pub(super) fn target(random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("n{}", random.below(12)),
        1 => format!("d{}", random.below(40)),
        _ => format!("d{}/f{}", random.below(40), random.below(400)),
    }
}

/// Chooses an entry; its path can lead through links to folders. `None` if none of a few is wanted.
pub(super) fn choose(root: &Path, random: &mut Random, wanted: impl Fn(&Metadata) -> bool) -> Option<String> {
    for _ in 0..40 {
        let mut path = String::new();
        while let names = names(&root.join(&path))
            && !names.is_empty()
        {
            let name = &names[random.below(names.len())];
            let next = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let found = fs::symlink_metadata(root.join(&next)).unwrap();
            let leads_on = fs::metadata(root.join(&next)).is_ok_and(|found| found.is_dir());
            path = next;
            if !leads_on || random.one_in(4) {
                if wanted(&found) {
                    return Some(path);
                }
                break;
            }
        }
    }
    None
}

/// Chooses a path that may be free, below any folder.
pub(super) fn choose_place(root: &Path, random: &mut Random) -> String {
    let folder = choose(root, random, Metadata::is_dir).filter(|_| !random.one_in(8));
    let name = format!("n{}", random.below(12));
    folder.map_or(name.clone(), |folder| format!("{folder}/{name}"))
}

/// Lists a folder; nothing for what is none.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Describes the entries of a folder as the guest does; `None` for what is no folder.
pub(super) fn show(folder: &Path, is_whole: bool) -> Option<String> {
    if !fs::metadata(folder).is_ok_and(|found| found.is_dir()) {
        return None;
    }
    let (mut lines, mut left) = (String::new(), vec![String::new()]);
    while let Some(inner) = left.pop() {
        for name in names(&folder.join(&inner)) {
            let below = if inner.is_empty() { name } else { format!("{inner}/{name}") };
            let at = folder.join(&below);
            let found = fs::symlink_metadata(&at).unwrap();
            lines += &if found.is_dir() {
                format!("folder {below}\n")
            } else if found.is_symlink() {
                format!("link {} {below}\n", fs::read_link(&at).unwrap().display())
            } else {
                format!("file {} {} {below}\n", found.len(), digest(&fs::read(&at).unwrap()))
            };
            if is_whole && found.is_dir() {
                left.push(below);
            }
        }
    }
    Some(lines)
}

/// FNV-1a.
pub(super) fn digest(content: &[u8]) -> String {
    let byte = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", content.iter().fold(0xcbf2_9ce4_8422_2325, byte))
}

/// Entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File(Vec<u8>),
    Link(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) inode: u64,
    /// Seconds and nanoseconds of the last change.
    pub(super) modified: (i64, i64),
    /// First path of the same file.
    pub(super) same: String,
}

pub(super) type Tree = BTreeMap<String, Entry>;

/// Reads a whole tree.
pub(super) fn read(root: &Path) -> Tree {
    let (mut tree, mut left, mut first) = (Tree::new(), vec![String::new()], HashMap::new());
    while let Some(inner) = left.pop() {
        for name in names(&root.join(&inner)) {
            let path = if inner.is_empty() { name } else { format!("{inner}/{name}") };
            let at = root.join(&path);
            let found = fs::symlink_metadata(&at).unwrap();
            let kind = match () {
                () if found.is_dir() => {
                    left.push(path.clone());
                    Kind::Folder
                }
                () if found.is_symlink() => {
                    Kind::Link(fs::read_link(&at).unwrap().into_os_string().into_string().unwrap())
                }
                () => Kind::File(fs::read(&at).unwrap()),
            };
            let (mode, inode, modified) = (found.mode() & 0o7777, found.ino(), (found.mtime(), found.mtime_nsec()));
            tree.insert(path, Entry { kind, mode, inode, modified, same: String::new() });
        }
    }
    for (path, entry) in &mut tree {
        entry.same = first.entry(entry.inode).or_insert_with(|| path.clone()).clone();
    }
    tree
}
