//! Native programs change a copy of a folder, and a guest does the same through a stage: each step shows the same, and so do the
//! difference and the commit.

mod difference;
mod tree;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::staging::{Limits as StageLimits, Stage, Stages};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Policy, Runtime, ToolCall};

use crate::crib::{Crib, target};
use tree::{Kind, Random, Tree};

/// Files, operations and rounds; `TOOLCRIB_TEST_TREES=10000,1000,3` sets others. A fourth number is the seed of the first round.
const DEFAULT: [u64; 3] = [300, 120, 2];
/// Entries of the largest tree that is copied or removed by one operation.
const MAX_TREE: usize = 80;

/// One operation, for a native program and for the guest.
#[derive(Debug)]
struct Op {
    program: Vec<String>,
    input: String,
    step: Value,
    /// Paths that it names.
    paths: Vec<String>,
}

impl Op {
    fn new(program: &[&str], step: Value) -> Self {
        let text = |key: &str| step[key].as_str().map(str::to_owned);
        // The target of a link is none of them.
        let names_two = program[0] != "ln" || program[1] == "-T";
        let paths = ["path", "to"].iter().take(1 + usize::from(names_two)).filter_map(|key| text(key)).collect();
        let input = text("text").unwrap_or_default();
        Self { program: program.iter().map(|word| (*word).to_owned()).collect(), input, step, paths }
    }
}

/// A folder under a stage, and a copy of it.
struct Pair {
    crib: Crib,
    copy: PathBuf,
    before: Tree,
    runtime: Option<Runtime>,
    tokio: tokio::runtime::Runtime,
    /// Numbers of the files that the copy had at first. They are kept, so that no new file gets one of them.
    first: HashSet<u64>,
    /// Permissions of files that a moved file has replaced, by its number in the copy.
    replaced: HashMap<u64, BTreeSet<u32>>,
    random: Random,
}

impl Pair {
    fn new(files: usize, random: Random) -> Self {
        let crib = Crib::with_guests(&["file_steps"]);
        let copy = crib.path("copy");
        fs::create_dir(&copy).unwrap();
        for folder in [&crib.path("work"), &copy] {
            tree::fill(folder, files, random.clone());
        }
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let before = tree::read(&crib.path("work"));
        fs::create_dir(crib.path("kept")).unwrap();
        let mut first = HashSet::new();
        for (path, entry) in tree::read(&copy).into_iter().filter(|(_, entry)| matches!(entry.kind, Kind::File(_))) {
            if first.insert(entry.inode) {
                fs::hard_link(copy.join(path), crib.path(format!("kept/{}", entry.inode))).unwrap();
            }
        }
        let mut pair = Self { crib, copy, before, runtime: None, tokio, first, replaced: HashMap::new(), random };
        pair.open();
        pair
    }

    /// Opens the stage, as another process would.
    fn open(&mut self) {
        self.runtime = None;
        let stages = Stages::new(self.crib.path("stages"));
        let stage = once_free(|| stages.open("one", StageLimits::default()));
        let builder = Runtime::builder(Audit::off())
            .trusted_source(self.crib.path("tools.json"))
            .compile_cache(target().join("test-cache"))
            .policy(Policy::default().allow(Permission::Write(self.crib.path("work"))))
            .limits(Limits::with_deadline(Duration::from_secs(600)));
        self.runtime = Some(builder.stage(stage).build().unwrap());
    }

    /// Closes the stage of the calls, and opens it to be read or committed.
    fn take(&mut self) -> Arc<Stage> {
        self.runtime = None;
        let stages = Stages::new(self.crib.path("stages"));
        once_free(|| stages.take("one"))
    }

    /// Lets the guest do steps, and returns their results.
    fn guest(&self, steps: &[Value]) -> Vec<Value> {
        let call = ToolCall::new("", "file_steps", json!({ "steps": steps }).to_string());
        let result = self.tokio.block_on(self.runtime.as_ref().unwrap().call(call));
        assert!(!result.is_error(), "{}", result.content());
        serde_json::from_str(&result.content()).unwrap()
    }

    /// Number of an entry of the copy, and that of the entry behind its links.
    fn number(&self, path: &str) -> Option<u64> {
        fs::symlink_metadata(self.copy.join(path)).ok().map(|found| found.ino())
    }

    fn number_behind(&self, path: &str) -> Option<u64> {
        fs::metadata(self.copy.join(path)).ok().map(|found| found.ino())
    }

    /// Chooses an operation; `None` if the tree has nothing for it.
    fn choose(&mut self) -> Option<Op> {
        let Self { copy, random, .. } = self;
        let is_file = Metadata::is_file;
        let place = tree::choose_place(copy, random);
        let file = tree::choose(copy, random, is_file);
        let target = if random.one_in(3) { file.clone().unwrap_or(place.clone()) } else { place.clone() };
        let (text, at) = (random.text(), random.below(3_000));
        let kind = random.below(20);
        let any = |_: &Metadata| true;
        Some(match kind {
            0..3 => {
                let step = json!({"op": "write", "path": target, "text": text});
                Op::new(&["tee", "--", &target], step)
            }
            3..5 => {
                let (seek, of) = (format!("seek={at}"), format!("of={target}"));
                let step = json!({"op": "patch", "path": target, "text": text, "at": at});
                Op::new(
                    &["dd", "bs=64K", "iflag=fullblock", "oflag=seek_bytes", "conv=notrunc", "status=none", &seek, &of],
                    step,
                )
            }
            5 => {
                let step = json!({"op": "resize", "path": target, "at": at});
                Op::new(&["truncate", "-s", &at.to_string(), "--", &target], step)
            }
            6..8 => {
                let from = file?;
                let to = if random.one_in(2) { tree::choose(copy, random, is_file)? } else { place };
                let step = json!({"op": "copy", "path": from, "to": to});
                // `cp` refuses what the system allows: a file onto itself, and a new file by a link.
                let is_refused = self.number_behind(&from) == self.number_behind(&to)
                    || fs::symlink_metadata(self.copy.join(&to)).is_ok_and(|found| found.is_symlink());
                (!is_refused).then(|| Op::new(&["cp", "-T", "--no-preserve=mode", "--", &from, &to], step))?
            }
            8 => {
                let from = tree::choose(copy, random, Metadata::is_dir)?;
                let is_inside = self.is_inside(&place, &from);
                let is_there = self.copy.join(&place).symlink_metadata().is_ok();
                let step = json!({"op": "copy_tree", "path": from, "to": place});
                let op = Op::new(&["cp", "-rT", "--no-preserve=mode", "--", &from, &place], step);
                (!is_inside && !is_there && self.is_small(&from)).then_some(op)?
            }
            9..13 => {
                let from = tree::choose(copy, random, any)?;
                let to = if random.one_in(3) { tree::choose(copy, random, any)? } else { place };
                let step = json!({"op": "move", "path": from, "to": to});
                // `mv` removes the first of two names of one file.
                (self.number(&from) != self.number(&to)).then(|| Op::new(&["mv", "-fT", "--", &from, &to], step))?
            }
            13..15 => {
                let path = tree::choose(copy, random, |found| !found.is_dir())?;
                Op::new(&["rm", "--", &path], json!({"op": "remove", "path": path}))
            }
            15 => {
                let path = tree::choose(copy, random, Metadata::is_dir)?;
                let op = Op::new(&["rm", "-r", "--", &path], json!({"op": "remove_tree", "path": path}));
                self.is_small(&path).then_some(op)?
            }
            16 => {
                let path = tree::choose(copy, random, Metadata::is_dir)?;
                Op::new(&["rmdir", "--", &path], json!({"op": "remove_folder", "path": path}))
            }
            17 => {
                let from = file?;
                Op::new(&["ln", "-T", "--", &from, &place], json!({"op": "name", "path": from, "to": place}))
            }
            18 => {
                let leads_to = tree::target(random);
                let step = json!({"op": "link", "path": place, "to": leads_to});
                Op::new(&["ln", "-sT", "--", &leads_to, &place], step)
            }
            _ => Op::new(&["mkdir", "--", &place], json!({"op": "mkdir", "path": place})),
        })
    }

    fn is_small(&self, path: &str) -> bool {
        tree::show(&self.copy.join(path), true).is_some_and(|lines| lines.lines().count() <= MAX_TREE)
    }

    /// Returns `true` if the folder of a place is inside another.
    fn is_inside(&self, place: &str, folder: &str) -> bool {
        let above = self.copy.join(place).parent().unwrap().canonicalize();
        above.is_ok_and(|above| above.starts_with(self.copy.join(folder).canonicalize().unwrap()))
    }

    /// Performs an operation on both sides, and compares what they show in the folders that it names.
    fn apply(&mut self, op: &Op) {
        let replaced = self.replaced(op);
        let mut child = Command::new(&op.program[0])
            .args(&op.program[1..])
            .current_dir(&self.copy)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its paths does not read.
        let _ = child.stdin.take().unwrap().write_all(op.input.as_bytes());
        let native = child.wait_with_output().unwrap();
        let above = |path: &String| path.rsplit_once('/').map_or(".".to_owned(), |(folder, _)| folder.to_owned());
        let folders: BTreeSet<String> = op.paths.iter().map(above).chain(op.paths.iter().cloned()).collect();
        let shows = folders.iter().map(|folder| json!({"op": "show", "path": folder}));
        let steps: Vec<_> = [op.step.clone()].into_iter().chain(shows).collect();
        let results = self.guest(&steps);
        let said = String::from_utf8_lossy(&native.stderr);
        assert_eq!(results[0].get("ok").is_some(), native.status.success(), "{op:?}: {} and {said}", results[0]);
        for (folder, result) in folders.iter().zip(&results[1..]) {
            let shown = tree::show(&self.copy.join(folder), false);
            assert_eq!(result["ok"].as_str(), shown.as_deref(), "`{folder}` after {op:?}, {said}");
        }
        if let (true, Some((number, mode))) = (native.status.success(), replaced) {
            let of_replaced = self.replaced.get(&number).cloned().unwrap_or_default();
            let inode = self.number(&op.paths[1]).unwrap();
            self.replaced.entry(inode).or_default().extend(of_replaced.into_iter().chain([mode]));
        }
    }

    /// Returns the file whose place a moved one takes, and its permissions.
    fn replaced(&self, op: &Op) -> Option<(u64, u32)> {
        let to = op.paths.get(1).filter(|_| op.step["op"] == "move")?;
        let found = fs::symlink_metadata(self.copy.join(to)).ok().filter(Metadata::is_file)?;
        Some((found.ino(), found.mode() & 0o777))
    }

    /// Compares both sides as a whole.
    fn compare(&self) {
        let shown = tree::show(&self.copy, true).unwrap();
        let seen = self.guest(&[json!({"op": "digest_tree", "path": "."})]);
        assert_eq!(seen[0]["ok"], tree::digest(shown.as_bytes()), "{seen:?}");
    }

    /// Commits, and compares the folder with the copy.
    fn commit(mut self) {
        let stage = self.take();
        let root = self.crib.path("work").canonicalize().unwrap();
        let after = tree::read(&self.copy);
        for (path, entry) in tree::read(&root) {
            assert_eq!(entry, self.before[&path], "`{path}` has changed before the commit");
        }
        difference::compare(&stage, &root, &self.before, &after);
        let untouched = difference::untouched(&stage, &root, &self.before, &after);
        stage.commit(false, None, &mut |_, _| {}).unwrap();
        let committed = tree::read(&root);
        assert_eq!(committed.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        let mut modes: HashMap<&str, BTreeSet<u32>> = HashMap::new();
        for (path, entry) in &after {
            // A new file takes the permissions of the one that it replaces.
            let of_replaced = self.before.get(path).filter(|was| matches!(was.kind, Kind::File(_))).map(|was| was.mode);
            let new = Some(entry).filter(|entry| !self.first.contains(&entry.inode)).into_iter();
            let others = self.replaced.get(&entry.inode).into_iter().flatten().copied().chain(of_replaced);
            let all = [entry.mode].into_iter().chain(new.flat_map(|_| others.clone().collect::<Vec<_>>()));
            modes.entry(&entry.same).or_default().extend(all);
        }
        for (path, entry) in &committed {
            let other = &after[path];
            assert_eq!((&entry.kind, &entry.same), (&other.kind, &other.same), "`{path}`");
            let modes = &modes[other.same.as_str()];
            assert!(modes.contains(&entry.mode), "`{path}` has {}, and not one of {modes:?}", entry.mode);
        }
        for (path, origin) in untouched {
            let (is, was) = (&committed[&path], &self.before[&origin]);
            assert_eq!(
                (is.inode, is.modified, is.mode),
                (was.inode, was.modified, was.mode),
                "`{path}` was not touched"
            );
        }
    }
}

/// Opens a stage once nobody holds its lock: a process that another test has just started has the file of the lock until it runs
/// its program.
fn once_free(open: impl Fn() -> io::Result<Arc<Stage>>) -> Arc<Stage> {
    for _ in 0..1000 {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the stage is still in use");
}

/// Changes one tree, and commits it.
fn round(files: usize, operations: usize, seed: u64) {
    eprintln!("{files} files, {operations} operations, seed {seed}");
    let mut pair = Pair::new(files, Random(seed));
    let interval = (operations / 8).max(1);
    let mut done = 0;
    while done < operations {
        let Some(op) = pair.choose() else { continue };
        pair.apply(&op);
        done += 1;
        if done % interval == 0 {
            pair.compare();
        }
        if done % (interval * 3) == 0 {
            pair.open();
        }
    }
    pair.compare();
    pair.commit();
}

#[test]
fn a_stage_shows_and_commits_what_native_programs_make_of_a_copy() {
    let given = std::env::var("TOOLCRIB_TEST_TREES").unwrap_or_default();
    let given: Vec<u64> = given.split(',').filter_map(|number| number.parse().ok()).collect();
    let [files, operations, rounds] = [0, 1, 2].map(|at| given.get(at).copied().unwrap_or(DEFAULT[at]));
    let seed = given.get(3).copied().or_else(|| std::env::var("PROPTEST_RNG_SEED").ok()?.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    for round in 0..rounds {
        self::round(files as usize, operations as usize, seed + round);
    }
}
