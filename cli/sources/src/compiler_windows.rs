//! Bounds of a compiler process on Windows, and the exit codes that show which bound it exceeded.

use std::io;
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use toolcrib_base::windows::job_object::{JobObject, SUSPENDED};

/// Flag of creation: the process has no console, so that it neither reads what is typed nor writes to the window.
const DETACHED: u32 = 0x8;

/// Exit code of a process that used up its processor time: `ERROR_NOT_ENOUGH_QUOTA`.
const OUT_OF_TIME: u32 = 1816;

/// Exit codes of processes that ran out of memory or crashed.
const BROKE_OFF: [u32; 8] = [
    // An abort, also after a refused allocation: `STATUS_STACK_BUFFER_OVERRUN`, the code of each fast failure.
    0xC000_0409,
    // `STATUS_ACCESS_VIOLATION`
    0xC000_0005,
    // `STATUS_IN_PAGE_ERROR`
    0xC000_0006,
    // `STATUS_NO_MEMORY`
    0xC000_0017,
    // `STATUS_ILLEGAL_INSTRUCTION`
    0xC000_001D,
    // `STATUS_STACK_OVERFLOW`
    0xC000_00FD,
    // `STATUS_COMMITMENT_LIMIT`
    0xC000_012D,
    // `STATUS_BREAKPOINT`
    0x8000_0003,
];

/// Job object of one process.
pub(super) struct Bounds(JobObject);

impl Bounds {
    /// Bounds the processor time in user mode and the committed memory, and the number of processes to one.
    pub(super) fn new(seconds: u64, memory: usize) -> io::Result<Self> {
        JobObject::for_one_process(memory, seconds).map(Self)
    }

    /// Creates a process that runs nothing before [`Bounds::hold`].
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.creation_flags(SUSPENDED | DETACHED).spawn()
    }

    pub(super) fn hold(&self, process: &Child) -> io::Result<()> {
        self.0.admit(process)
    }
}

/// Names of this program.
pub(super) fn programs() -> Vec<PathBuf> {
    std::env::current_exe().into_iter().collect()
}

pub(super) fn command(program: &Path) -> Command {
    Command::new(program)
}

/// `true` if the process exceeded its processor time.
pub(super) fn was_out_of_time(status: ExitStatus) -> bool {
    code(status) == Some(OUT_OF_TIME)
}

/// `true` if the process ended like one that ran out of memory.
pub(super) fn broke_off(status: ExitStatus) -> bool {
    code(status).is_some_and(|code| BROKE_OFF.contains(&code))
}

fn code(status: ExitStatus) -> Option<u32> {
    status.code().map(i32::cast_unsigned)
}

#[cfg(test)]
mod tests {
    use std::os::windows::process::ExitStatusExt;

    use super::*;

    #[test]
    fn an_exit_code_tells_how_a_process_ended() {
        for (code, time, memory) in [
            (0, false, false),
            (1, false, false),
            (1816, true, false),
            (0xC000_0409, false, true),
            (0xC000_0005, false, true),
            (0xC000_012D, false, true),
            // Ctrl-C
            (0xC000_013A, false, false),
        ] {
            let status = ExitStatus::from_raw(code);
            assert_eq!((was_out_of_time(status), broke_off(status)), (time, memory), "{code:x}");
        }
    }
}
