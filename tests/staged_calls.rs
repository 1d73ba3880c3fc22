//! Calls of tests whose writes are held back. In a process with the variable [`SWITCH`], each call that a test makes by the command
//! line writes into a stage, which is committed after it. The test sees what it would have seen of a direct call.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::sync::LazyLock;

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
    let thread = std::thread::current();
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file of the switch");
    // One write is whole, whatever other threads write.
    file.write_all(format!("{}\n", thread.name().unwrap_or_default()).as_bytes()).expect("a line");
    arguments
}

/// Commits what a call has written, and returns what the direct call would have printed.
pub(crate) fn committed(command: &Command, ran: Ran) -> Ran {
    if !command.get_args().any(|argument| argument == OPTION) {
        return ran;
    }
    let mut commit = Command::new(TOOLCRIB);
    commit.args(["stage", "commit", "again", "--yes"]).env_clear();
    commit.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = commit.current_dir(command.get_current_dir().expect("the folder of the crib")).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || said.contains("there is no stage") || said.contains("there are no stages"),
        "{said}"
    );
    let of_stage = |line: &&str| {
        let starts = ["staged in `again`", "nothing was written, so", "hint: `toolcrib stage diff"];
        !starts.iter().any(|start| line.starts_with(start))
    };
    let stderr: String = ran.stderr.split_inclusive('\n').filter(of_stage).collect();
    Ran { stderr, ..ran }
}
