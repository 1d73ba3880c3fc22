//! A stage over a folder, and a copy of the folder that is changed for real.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use proptest::prelude::*;
use tempfile::TempDir;
use toolcrib_staging::{
    About, CommitError, Committed, EntryKind, FolderId, Limits, Open, Opened, Rules, Stage, StagedCall, StagedFolder,
    Stages,
};

#[derive(Debug, Clone)]
pub(crate) enum Op {
    MakeFolder(String),
    Write(String, String),
    Append(String, String),
    Create(String),
    Link(String, String),
    Name(String, String),
    Rename(String, String),
    Remove(String),
    RemoveFolder(String),
    About(String),
    Read(String),
}

/// Rules that allow everything.
pub(crate) struct Free([FolderId; 1]);

impl Rules for Free {
    fn entry(&self, _: Option<&About>, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn request(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn file(&self, _: &About, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn placed(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn moved(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn count(&self) -> io::Result<()> {
        Ok(())
    }

    fn is_link_out(&self, _: &str, _: usize) -> bool {
        false
    }

    fn roots(&self) -> &[FolderId] {
        &self.0
    }

    fn call(&self) -> Option<&Arc<StagedCall>> {
        None
    }

    fn until(&self) -> Option<Instant> {
        None
    }
}

/// Entry of a dump: its kind and mode, its content or target, and the first path of the same file.
pub(crate) type Dump = BTreeMap<String, (String, Vec<u8>, String)>;

/// Folder under a stage.
pub(crate) enum Folder {
    Temporary(TempDir),
    Other(PathBuf),
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Other(path) => path,
        }
    }
}

pub(crate) struct Pair {
    pub(crate) stages: TempDir,
    pub(crate) folder: Folder,
    pub(crate) copy: TempDir,
    pub(crate) stage: Arc<Stage>,
    root: Option<StagedFolder>,
    real: Dir,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with_stages(TempDir::new().unwrap())
    }

    pub(crate) fn with_stages(stages: TempDir) -> Self {
        Self::with(stages, Folder::Temporary(TempDir::new().unwrap()))
    }

    /// Creates a pair over an empty folder, which stays.
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Self::with(TempDir::new().unwrap(), Folder::Other(folder))
    }

    fn with(stages: TempDir, folder: Folder) -> Self {
        let copy = TempDir::new().unwrap();
        fill(folder.path());
        fill(copy.path());
        let stage = Stages::new(stages.path()).open("one", Limits::default()).unwrap();
        let root = attach(&stage, folder.path());
        let real = Dir::open_ambient_dir(copy.path(), ambient_authority()).unwrap();
        Self { stages, folder, copy, stage, root: Some(root), real }
    }

    /// Opens the stage anew, as another process would.
    pub(crate) fn reopen(&mut self) {
        self.close();
        self.stage = Stages::new(self.stages.path()).open("one", Limits::default()).unwrap();
        self.root = Some(attach(&self.stage, self.folder.path()));
    }

    /// Closes the stage, so that another process can open it.
    pub(crate) fn close(&mut self) {
        self.root = None;
        let other = TempDir::new().unwrap();
        self.stage = Stages::new(other.path()).open("none", Limits::default()).unwrap();
    }

    pub(crate) fn root(&self) -> &StagedFolder {
        self.root.as_ref().unwrap()
    }

    /// Performs an operation on both, which must have the same result.
    pub(crate) fn apply(&mut self, number: usize, op: &Op) {
        if self.is_name_of_link(op) {
            return;
        }
        let (staged, real) = (self.apply_staged(op), self.apply_real(op));
        match (&staged, &real) {
            (Ok(one), Ok(other)) => assert_eq!(one, other, "{number}: {op:?}"),
            (Err(_), Err(_)) => {}
            _ => panic!("{number}: {op:?}: staged {staged:?}, real {real:?}"),
        }
    }

    /// Returns `true` for a second name of a link, which a stage refuses.
    fn is_name_of_link(&self, op: &Op) -> bool {
        matches!(op, Op::Name(path, _) if self.real.symlink_metadata(path).is_ok_and(|found| found.is_symlink()))
    }

    pub(crate) fn apply_staged(&self, op: &Op) -> io::Result<Vec<u8>> {
        let root = self.root();
        let rules = Free([root.id()]);
        let write = |path: &str, how: Open, text: &str, append: bool| match root.open(path, how, &rules)? {
            Opened::Written(mut file) => {
                if append {
                    io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
                }
                file.write_all(text.as_bytes())?;
                Ok(Vec::new())
            }
            _ => panic!("not a file of the stage"),
        };
        let (create, plain) = (Open { create: true, write: true, follow: true, ..Open::default() }, Vec::new());
        match op {
            Op::MakeFolder(path) => root.make_folder(path, &rules).map(|()| plain),
            Op::Write(path, text) => write(path, Open { truncate: true, ..create }, text, false),
            Op::Append(path, text) => write(path, Open { create: false, ..create }, text, true),
            Op::Create(path) => write(path, Open { exclusive: true, ..create }, "", false),
            Op::Link(path, target) => root.make_link(path, target, &rules).map(|()| plain),
            Op::Name(path, to) => root.make_name(path, root, to, &rules).map(|()| plain),
            Op::Rename(path, to) => root.rename(path, root, to, &rules).map(|()| plain),
            Op::Remove(path) => root.remove_file(path, &rules).map(|()| plain),
            Op::RemoveFolder(path) => root.remove_folder(path, &rules).map(|()| plain),
            Op::About(path) => {
                let about = root.about(path, true)?;
                Ok(format!("{:?} {}", about.kind, if about.kind == EntryKind::File { about.size } else { 0 })
                    .into_bytes())
            }
            Op::Read(path) => {
                let how = Open { read: true, follow: true, ..Open::default() };
                match root.open(path, how, &rules)? {
                    Opened::Written(file) => content(file),
                    Opened::Real(file, _) => content(file),
                    Opened::Folder(_) => Ok(b"folder".to_vec()),
                }
            }
        }
    }

    pub(crate) fn apply_real(&self, op: &Op) -> io::Result<Vec<u8>> {
        let real = &self.real;
        let write = |path: &str, options: &OpenOptions, text: &str| {
            real.open_with(path, options)?.write_all(text.as_bytes()).map(|()| Vec::new())
        };
        let (mut options, plain) = (OpenOptions::new(), Vec::new());
        match op {
            Op::MakeFolder(path) => real.create_dir(path).map(|()| plain),
            Op::Write(path, text) => write(path, options.write(true).create(true).truncate(true), text),
            Op::Append(path, text) => write(path, options.append(true), text),
            Op::Create(path) => write(path, options.write(true).create_new(true), ""),
            Op::Link(path, target) => real.symlink_contents(target, path).map(|()| plain),
            Op::Name(path, to) => real.hard_link(path, real, to).map(|()| plain),
            Op::Rename(path, to) => real.rename(path, real, to).map(|()| plain),
            Op::Remove(path) => real.remove_file(path).map(|()| plain),
            Op::RemoveFolder(path) => real.remove_dir(path).map(|()| plain),
            Op::About(path) => {
                let about = real.metadata(path)?;
                let kind = if about.is_file() { EntryKind::File } else { EntryKind::Folder };
                Ok(format!("{kind:?} {}", if about.is_file() { about.len() } else { 0 }).into_bytes())
            }
            Op::Read(path) => match real.metadata(path)?.is_dir() {
                true => Ok(b"folder".to_vec()),
                false => content(real.open(path)?.into_std()),
            },
        }
    }

    /// Dumps what the stage shows.
    pub(crate) fn staged(&self) -> Dump {
        let mut dump = Dump::new();
        let (mut left, mut first) = (vec![(self.root().reopen(), String::new())], HashMap::new());
        while let Some((folder, at)) = left.pop() {
            let mut names: Vec<String> = Vec::new();
            while let part = folder.staged_after(names.last().map_or("", String::as_str), 3)
                && !part.is_empty()
            {
                names.extend(part.into_iter().map(|(name, _)| name));
            }
            if let Some(below) = folder.below().unwrap() {
                let entries = Dir::from_std_file(below).entries().unwrap();
                let mut entries: VecDeque<String> =
                    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
                folder.retain_shown(&mut entries, folder.mark(), |name| Some(name));
                names.extend(entries);
            }
            names.sort();
            for name in names {
                let path = format!("{at}/{name}");
                let about = folder.about(&name, false).unwrap();
                let kind = format!("{:?}", about.kind);
                let (bytes, same) = match about.kind {
                    EntryKind::Folder => {
                        let how = Open { folder: true, read: true, ..Open::default() };
                        match folder.open(&name, how, &Free([folder.id()])).unwrap() {
                            Opened::Folder(inner) => left.push((inner, path.clone())),
                            other => panic!("{other:?}"),
                        }
                        (Vec::new(), path.clone())
                    }
                    EntryKind::Link => (folder.read_link(&name).unwrap().into_bytes(), path.clone()),
                    _ => {
                        let how = Open { read: true, ..Open::default() };
                        let bytes = match folder.open(&name, how, &Free([folder.id()])).unwrap() {
                            Opened::Written(file) => content(file).unwrap(),
                            Opened::Real(file, _) => content(file).unwrap(),
                            Opened::Folder(_) => panic!("a folder"),
                        };
                        (bytes, first.entry((about.device, about.inode)).or_insert(path.clone()).clone())
                    }
                };
                dump.insert(path, (kind, bytes, same));
            }
        }
        // Which names are of one file shows once it is committed.
        dump.values_mut().for_each(|(_, _, same)| same.clear());
        dump
    }

    /// Dumps the copy.
    pub(crate) fn real(&self) -> Dump {
        let mut dump = dump(self.copy.path());
        dump.values_mut().for_each(|(_, _, same)| same.clear());
        dump
    }

    /// Dumps the folder under the stage.
    pub(crate) fn base(&self) -> Dump {
        let mut dump = dump(self.folder.path());
        dump.values_mut().for_each(|(_, _, same)| same.clear());
        dump
    }
}

/// Writes a file in a folder of a stage.
pub(crate) fn write(folder: &StagedFolder, path: &str, text: &str) {
    try_write(folder, path, text).unwrap();
}

/// Writes a file in a folder of a stage; its content before stays in front.
pub(crate) fn try_write(folder: &StagedFolder, path: &str, text: &str) -> io::Result<()> {
    let how = Open { create: true, write: true, ..Open::default() };
    match folder.open(path, how, &Free([folder.id()]))? {
        Opened::Written(mut file) => file.write_all(text.as_bytes()),
        other => panic!("{other:?}"),
    }
}

/// Commits a stage.
pub(crate) fn commit(stage: &Arc<Stage>) -> Result<Committed, CommitError> {
    stage.clone().commit(false, None, &mut |_, _| {})
}

/// Makes a link in a folder of a stage.
pub(crate) fn link(folder: &StagedFolder, path: &str, target: &str) {
    folder.make_link(path, target, &Free([folder.id()])).unwrap();
}

/// Opens a folder below another.
pub(crate) fn folder(above: &StagedFolder, path: &str) -> io::Result<StagedFolder> {
    let how = Open { folder: true, read: true, ..Open::default() };
    match above.open(path, how, &Free([above.id()]))? {
        Opened::Folder(folder) => Ok(folder),
        other => panic!("{other:?}"),
    }
}

/// Moves an entry in a folder of a stage.
pub(crate) fn rename(folder: &StagedFolder, path: &str, to: &str) -> io::Result<()> {
    folder.rename(path, folder, to, &Free([folder.id()]))
}

/// Removes a file in a folder of a stage.
pub(crate) fn remove(folder: &StagedFolder, path: &str) -> io::Result<()> {
    folder.remove_file(path, &Free([folder.id()]))
}

pub(crate) fn attach(stage: &Arc<Stage>, folder: &Path) -> StagedFolder {
    stage.attach(&folder.canonicalize().unwrap(), File::open(folder).unwrap(), None).unwrap()
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map(|_| bytes)
}

/// Fills a folder.
fn fill(folder: &Path) {
    let at = |name: &str| folder.join(name);
    for name in ["a", "a/b", "c", "c/a", "empty"] {
        fs::create_dir(at(name)).unwrap();
    }
    for name in ["x", "a/x", "a/b/x", "c/x", "c/a/b"] {
        fs::write(at(name), name).unwrap();
    }
    fs::set_permissions(at("a/x"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(at("c/x"), at("a/c")).unwrap();
    symlink("a", at("b")).unwrap();
    symlink("missing", at("c/b")).unwrap();
    symlink("x", at("a/b/c")).unwrap();
}

/// Dumps a real folder.
pub(crate) fn dump(root: &Path) -> Dump {
    let mut dump = Dump::new();
    let (mut left, mut first) = (vec![root.to_owned()], HashMap::new());
    while let Some(folder) = left.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = format!("/{}", path.strip_prefix(root).unwrap().display());
            let found = fs::symlink_metadata(&path).unwrap();
            let (kind, bytes, same) = if found.is_dir() {
                left.push(path.clone());
                (EntryKind::Folder, Vec::new(), name.clone())
            } else if found.is_symlink() {
                (
                    EntryKind::Link,
                    fs::read_link(&path).unwrap().into_os_string().into_string().unwrap().into_bytes(),
                    name.clone(),
                )
            } else {
                let same = first.entry(found.ino()).or_insert(name.clone()).clone();
                (EntryKind::File, fs::read(&path).unwrap(), same)
            };
            dump.insert(name, (format!("{kind:?}"), bytes, same));
        }
    }
    dump
}

/// Paths over few names, so that operations meet.
fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => Just("a"), 4 => Just("b"), 4 => Just("c"), 4 => Just("x"), 1 => Just("y"), 1 => Just("empty"),
        1 => Just("."), 1 => Just(".."),
    ];
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

pub(crate) fn operations(max: usize) -> impl Strategy<Value = Vec<Op>> {
    let text = || "[a-z]{0,8}";
    let target =
        prop_oneof![Just("a".to_owned()), Just("b/c".to_owned()), Just("x".to_owned()), Just("none".to_owned())];
    let op = prop_oneof![
        2 => path().prop_map(Op::MakeFolder),
        3 => (path(), text()).prop_map(|(path, text)| Op::Write(path, text)),
        2 => (path(), text()).prop_map(|(path, text)| Op::Append(path, text)),
        1 => path().prop_map(Op::Create),
        1 => (path(), target).prop_map(|(path, target)| Op::Link(path, target)),
        2 => (path(), path()).prop_map(|(path, to)| Op::Name(path, to)),
        5 => (path(), path()).prop_map(|(path, to)| Op::Rename(path, to)),
        3 => path().prop_map(Op::Remove),
        2 => path().prop_map(Op::RemoveFolder),
        1 => path().prop_map(Op::About),
        1 => path().prop_map(Op::Read),
    ];
    prop::collection::vec(op, 1..max)
}
