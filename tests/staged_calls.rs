//! Calls of tests whose writes are held back. In a process with the variable [`SWITCH`], each call that a test makes by the command
//! line writes into a stage, which is committed after it. The test sees what it would have seen of a direct call. Until the commit,
//! nothing changes outside of the stage. A test that builds a runtime gets a stage for it.

use std::collections::BTreeMap;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use toolcrib::staging::{Limits, Stage, Stages};

use super::{Ran, TOOLCRIB};

/// Variable of a process whose tests write into stages: a file with the test of each such call, a name a line.
pub(crate) const SWITCH: &str = "TOOLCRIB_TESTS_STAGED";

/// Option that names the stage of all calls.
const OPTION: &str = "--stage=again";

static MADE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os(SWITCH));

/// Returns the arguments of a command, with the stage if it makes a call.
pub(crate) fn command<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = arguments.to_vec();
    let Some(file) = MADE.as_deref().filter(|_| arguments.first() == Some(&"call")) else { return arguments };
    arguments.insert(1, OPTION);
    note(file);
    arguments
}

/// Returns `true` if the tests of this process make their calls in stages.
pub(crate) fn is_on() -> bool {
    MADE.is_some()
}

/// Notes that the test of this thread made a call in a stage.
fn note(file: &std::ffi::OsStr) {
    let thread = std::thread::current();
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file of the switch");
    // One write is whole, whatever other threads write.
    file.write_all(format!("{}\n", thread.name().unwrap_or_default()).as_bytes()).expect("a line");
}

/// Opens a new stage for a runtime of a test, in this folder; `None` without the switch.
pub(crate) fn stage(folder: &Path) -> Option<Arc<Stage>> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    note(MADE.as_deref()?);
    let name = format!("runtime-{}", NUMBER.fetch_add(1, Relaxed));
    Some(Stages::new(folder.join("stages")).open(&name, Limits::default()).expect("a stage"))
}

/// Entries of a crib that the host itself writes.
const OF_THE_HOST: [&str; 5] = ["home", "audit", "results", "secrets", "approvals.json"];

/// Entries outside of the stage of a command: those of its folder, without those of the host.
#[derive(PartialEq)]
pub(crate) struct Outside(BTreeMap<PathBuf, String>);

impl Outside {
    /// Looks at the folder of a command; `None` for one without a stage.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        let folder = command.get_current_dir().filter(|_| has_stage(command))?;
        let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(at) = left.pop() {
            for entry in fs::read_dir(&at).expect("a folder").map(|entry| entry.expect("an entry")) {
                let path = entry.path();
                if at == folder && OF_THE_HOST.iter().any(|name| entry.file_name() == *name) {
                    continue;
                }
                let about = entry.metadata().expect("an entry");
                if about.is_dir() {
                    left.push(path.clone());
                }
                found.insert(path, state(&about));
            }
        }
        Some(Self(found))
    }

    /// Asserts that a command with a stage has left everything else as it was.
    pub(crate) fn assert_unchanged(self, command: &Command) {
        let now = Self::of(command).expect("a command with a stage").0;
        let differing = now.iter().find(|(path, state)| self.0.get(*path) != Some(state)).map(|(path, _)| path);
        let differing = differing.or_else(|| self.0.keys().find(|path| !now.contains_key(*path)));
        assert_eq!(differing, None, "a call in a stage has changed it");
    }
}

#[cfg(unix)]
fn state(about: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let time = (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
    format!("{} {} {:?}", about.ino(), about.size(), time)
}

#[cfg(not(unix))]
fn state(about: &Metadata) -> String {
    format!("{} {:?}", about.len(), about.modified())
}

fn has_stage(command: &Command) -> bool {
    command.get_args().any(|argument| argument == OPTION)
}

/// Commits what a call has written, and returns what the direct call would have printed.
pub(crate) fn committed(command: &Command, ran: Ran) -> Ran {
    if !has_stage(command) {
        return ran;
    }
    let mut commit = Command::new(TOOLCRIB);
    commit.args(["stage", "commit", "again", "--yes"]).env_clear();
    commit.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = commit.current_dir(command.get_current_dir().expect("the folder of the crib")).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || said.contains("no stage `again`") || said.contains("no stages exist"), "{said}");
    let of_stage = |line: &&str| {
        let starts = ["staged in `again`", "nothing was written, so", "hint: `toolcrib stage diff"];
        !starts.iter().any(|start| line.starts_with(start))
    };
    let stderr: String = ran.stderr.split_inclusive('\n').filter(of_stage).collect();
    let line = ran.line.replacen(&format!(" {OPTION}"), "", 1);
    Ran { line, stderr, ..ran }
}
