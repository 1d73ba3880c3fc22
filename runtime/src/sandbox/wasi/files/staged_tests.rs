//! A guest gets the same answers from a stage as from a real folder, errors included.

use std::fs::{self, File};
use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rustix::fs::fstat;
use tempfile::TempDir;
use toolcrib_staging::{Limits as StageLimits, Stages};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, Host, HostDescriptor, HostDirectoryEntryStream, OpenFlags, PathFlags,
};

use crate::policy::{Identity, Protected};
use crate::sandbox::descriptor_budget::DescriptorBudget;
use crate::sandbox::usage::Usage;
use crate::tool::{Access, Limits};

use super::guard::PathGuard;
use super::state::{FileState, Files};

#[derive(Debug, Clone)]
pub(super) enum Op {
    MakeFolder(String),
    /// Path, number of the flags, and whether links are followed.
    Open(String, u8, bool),
    Stat(String, bool),
    ReadLink(String),
    Link(String, String),
    Name(String, String),
    Move(String, String),
    RemoveFile(String),
    RemoveFolder(String),
    List(String),
}

/// A guest's folder, real or staged.
pub(super) struct Side {
    ctx: WasiCtx,
    table: ResourceTable,
    pub(super) files: FileState,
    root: Option<Resource<Descriptor>>,
    pub(super) folder: TempDir,
    _stages: TempDir,
}

impl Side {
    pub(super) fn new(is_staged: bool) -> Self {
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fill(folder.path());
        let path = folder.path().canonicalize().unwrap();
        let open = || File::open(&path).unwrap();
        let limits = Limits::default();
        let mut protected = Protected::default();
        protected.add(&path.join("kept"));
        let roots = [Identity::of(&fstat(open()).unwrap())].into();
        let guard = PathGuard { protected: Arc::new(protected), roots, ..PathGuard::default() };
        let usage = Arc::new(Usage::default());
        let mut files = FileState::new(&limits, &usage, DescriptorBudget::of_process(), guard);
        let guest = ["/".to_owned()];
        if is_staged {
            let stage = Stages::new(stages.path()).open("one", StageLimits::default()).unwrap();
            files = files.staged(Some(&stage));
            let staged = files.stage.as_mut().unwrap().grant(&path, open(), None, None).unwrap();
            files.add(stage.nothing().unwrap(), Access::Write, &guest, None, Some(staged));
        } else {
            files.add_folder(open(), Access::Write, &guest, None);
        }
        let mut side = Self {
            ctx: WasiCtx::builder().build(),
            table: ResourceTable::new(),
            files,
            root: None,
            folder,
            _stages: stages,
        };
        side.root = preopens::Host::get_directories(&mut side.view()).unwrap().pop().map(|(root, _)| root);
        side
    }

    fn view(&mut self) -> Files<'_> {
        let inner = WasiFilesystemCtxView { ctx: self.ctx.filesystem(), table: &mut self.table };
        Files { inner, state: &mut self.files }
    }

    fn root(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.root.as_ref().unwrap().rep())
    }

    /// Performs an operation, and returns its result as text.
    pub(super) fn apply(&mut self, op: &Op) -> String {
        let result = now(self.perform(op));
        match result {
            Ok(text) => text,
            Err(error) => format!("{:?}", self.view().convert_error_code(error).unwrap()),
        }
    }

    async fn perform(&mut self, op: &Op) -> FsResult<String> {
        let (root, other) = (self.root(), self.root());
        let mut files = self.view();
        let follow = |follows: bool| if follows { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() };
        let done = |()| "done".to_owned();
        match op.clone() {
            Op::MakeFolder(path) => files.create_directory_at(root, path).await.map(done),
            Op::Link(path, target) => files.symlink_at(root, target, path).await.map(done),
            // A stage gives links no second name.
            Op::Name(path, _) if files.readlink_at(Resource::new_borrow(root.rep()), path.clone()).await.is_ok() => {
                Ok(String::new())
            }
            Op::Name(path, to) => files.link_at(root, PathFlags::empty(), path, other, to).await.map(done),
            Op::Move(path, to) => files.rename_at(root, path, other, to).await.map(done),
            Op::RemoveFile(path) => files.unlink_file_at(root, path).await.map(done),
            Op::RemoveFolder(path) => files.remove_directory_at(root, path).await.map(done),
            Op::ReadLink(path) => files.readlink_at(root, path).await,
            Op::Stat(path, follows) => {
                let stat = files.stat_at(root, follow(follows), path).await?;
                let is_file = stat.type_ == DescriptorType::RegularFile;
                Ok(format!("{:?} {:?}", stat.type_, is_file.then_some((stat.size, stat.link_count))))
            }
            Op::List(path) => {
                let folder =
                    files.open_at(root, follow(true), path, OpenFlags::DIRECTORY, DescriptorFlags::READ).await?;
                let listing = files.read_directory(Resource::new_borrow(folder.rep())).await?;
                let mut names = Vec::new();
                while let Some(entry) = files.read_directory_entry(Resource::new_borrow(listing.rep())).await? {
                    names.push(format!("{} {:?}", entry.name, entry.type_));
                }
                names.sort();
                HostDirectoryEntryStream::drop(&mut files, listing).unwrap();
                HostDescriptor::drop(&mut files, folder).unwrap();
                Ok(names.join(", "))
            }
            Op::Open(path, flags, follows) => {
                let all = [OpenFlags::CREATE, OpenFlags::DIRECTORY, OpenFlags::EXCLUSIVE, OpenFlags::TRUNCATE];
                let chosen = all.into_iter().enumerate().filter(|(bit, _)| flags >> bit & 1 == 1);
                let open = chosen.fold(OpenFlags::empty(), |open, (_, flag)| open | flag);
                let mode = match flags >> 4 & 3 {
                    0 => DescriptorFlags::READ,
                    1 => DescriptorFlags::WRITE,
                    _ => DescriptorFlags::READ | DescriptorFlags::WRITE,
                };
                let (self_root, named) = (other, path.clone());
                let fd = files.open_at(root, follow(follows), path, open, mode).await?;
                let borrow = || Resource::new_borrow(fd.rep());
                let kind = files.get_type(borrow()).await?;
                let mut text = format!("{kind:?}");
                if follows {
                    let by_path = files.metadata_hash_at(self_root, PathFlags::SYMLINK_FOLLOW, named).await?;
                    let open = files.metadata_hash(borrow()).await?;
                    assert_eq!((by_path.lower, by_path.upper), (open.lower, open.upper), "one entry has one number");
                }
                if kind == DescriptorType::RegularFile {
                    let size = files.stat(borrow()).await?.size;
                    if mode.contains(DescriptorFlags::WRITE) {
                        let written = files.write(borrow(), b"more".to_vec(), size).await;
                        text += &format!(" wrote {written:?}", written = written.is_ok());
                    }
                    if mode.contains(DescriptorFlags::READ) {
                        text += &format!(" {:?}", files.read(borrow(), 1 << 16, 0).await?);
                    }
                    text += &format!(" {}", files.stat(borrow()).await?.size);
                }
                HostDescriptor::drop(&mut files, fd).unwrap();
                Ok(text)
            }
        }
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(super) fn fill(folder: &Path) {
    let at = |name: &str| folder.join(name);
    for name in ["a", "a/b", "c", "c/a", "empty", ".git", ".git/hooks"] {
        fs::create_dir(at(name)).unwrap();
    }
    for name in ["x", "a/x", "a/b/x", "c/x", "c/a/b", ".git/hooks/x", "kept"] {
        fs::write(at(name), name).unwrap();
    }
    fs::hard_link(at("c/x"), at("a/c")).unwrap();
    symlink("a", at("b")).unwrap();
    symlink("missing", at("c/b")).unwrap();
    symlink("../x", at("a/b/c")).unwrap();
    symlink("../../outside", at("c/a/c")).unwrap();
    symlink("/etc", at("a/b/a")).unwrap();
}

fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => Just("a"), 6 => Just("b"), 6 => Just("c"), 6 => Just("x"), 1 => Just("empty"), 1 => Just("."),
        1 => Just(".."), 1 => Just("kept"), 1 => Just(".git"), 1 => Just("tools.json"),
    ];
    let special = prop_oneof![
        Just(""),
        Just("/"),
        Just("/x"),
        Just("."),
        Just(".."),
        Just("./"),
        Just("../x"),
        Just(".git/hooks/x"),
        Just(".git/hooks/y"),
    ];
    prop_oneof![
        // The engine takes `file/.` for the file.
        12 => (prop::collection::vec(name, 1..4), prop::bool::weighted(0.1)).prop_map(|(names, slash)| {
            let name = names.join("/");
            format!("{}{}", name.trim_end_matches("/."), if slash { "/" } else { "" })
        }),
        1 => special.prop_map(str::to_owned),
    ]
}

pub(super) fn operations() -> impl Strategy<Value = Vec<Op>> {
    let target = prop_oneof![
        Just("a"),
        Just("b/c"),
        Just("x"),
        Just("none"),
        Just("../x"),
        Just("../../x"),
        Just("/etc"),
        Just("a/../x"),
        Just(""),
        Just("c/a/c"),
    ];
    let op = prop_oneof![
        2 => path().prop_map(Op::MakeFolder),
        6 => (path(), any::<u8>(), any::<bool>()).prop_map(|(path, flags, follows)| Op::Open(path, flags, follows)),
        // The engine describes a file also by a path that ends in a slash.
        2 => (path(), any::<bool>()).prop_map(|(path, follows)| Op::Stat(path.trim_end_matches('/').to_owned(), follows)),
        1 => path().prop_map(|path| Op::ReadLink(path.trim_end_matches('/').to_owned())),
        2 => (path(), target).prop_map(|(path, target)| Op::Link(path, target.to_owned())),
        2 => (path(), path()).prop_map(|(path, to)| Op::Name(path, to)),
        5 => (path(), path()).prop_map(|(path, to)| Op::Move(path, to)),
        3 => path().prop_map(Op::RemoveFile),
        2 => path().prop_map(Op::RemoveFolder),
        2 => path().prop_map(Op::List),
    ];
    prop::collection::vec(op, 1..50)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_guest_sees_no_difference_but_the_folder_stays(operations in operations()) {
        let (mut real, mut staged) = (Side::new(false), Side::new(true));
        for (number, op) in operations.iter().enumerate() {
            prop_assert_eq!(staged.apply(op), real.apply(op), "operation {}: {:?}", number, op);
        }
        let untouched = TempDir::new().unwrap();
        fill(untouched.path());
        prop_assert_eq!(names(staged.folder.path()), names(untouched.path()));
    }
}

/// Lists the paths below a folder, with the content of files.
pub(super) fn names(folder: &Path) -> Vec<(String, String)> {
    let (mut left, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                left.push(path.clone());
            }
            found.push((name, if kind.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() }));
        }
    }
    found.sort();
    found
}

#[test]
fn an_error_of_the_rules_is_recorded_as_a_denial() {
    let mut staged = Side::new(true);
    assert_eq!(staged.apply(&Op::RemoveFile("kept".to_owned())), format!("{:?}", ErrorCode::NotPermitted));
    assert_eq!(staged.apply(&Op::MakeFolder(".git/hooks/y".to_owned())), format!("{:?}", ErrorCode::NotPermitted));
    assert!(staged.files.quota.usage.denials().len() == 2);
}

#[test]
fn a_listing_names_each_file_once_also_if_all_are_written_meanwhile() {
    for is_staged in [false, true] {
        let mut side = Side::new(is_staged);
        let names: Vec<String> = (0..700).map(|number| format!("file-{number:03}")).collect();
        for name in &names {
            fs::write(side.folder.path().join("empty").join(name), "x").unwrap();
        }
        let (root, other) = (side.root(), side.root());
        let found = now(async {
            let mut files = side.view();
            let folder = files.open_at(
                root,
                PathFlags::empty(),
                "empty".to_owned(),
                OpenFlags::DIRECTORY,
                DescriptorFlags::READ,
            );
            let folder = folder.await?;
            let listing = files.read_directory(Resource::new_borrow(folder.rep())).await?;
            let mut found = Vec::new();
            while let Some(entry) = files.read_directory_entry(Resource::new_borrow(listing.rep())).await? {
                if found.is_empty() {
                    for name in &names {
                        let (root, path) = (Resource::new_borrow(other.rep()), format!("empty/{name}"));
                        let open = OpenFlags::TRUNCATE;
                        let fd = files.open_at(root, PathFlags::empty(), path, open, DescriptorFlags::WRITE).await?;
                        HostDescriptor::drop(&mut files, fd).unwrap();
                    }
                }
                found.push(entry.name);
            }
            FsResult::Ok(found)
        });
        let mut found = found.ok().unwrap();
        found.sort();
        assert_eq!(found, names, "{is_staged}");
    }
}
