//! Programs are compiled in processes of this very program, each for one program and with limits of its own: killed at its
//! bound, and gone when nobody waits any more. What is compiled and how, the library knows.

use std::io::{self, Read};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcrib::compiler::{Compiler, Failure, Job};

use crate::options::size_in_words;

/// The most threads of one process: more would need more memory, and wait for one another.
const MAX_THREADS: usize = 4;

/// Starts the processes, as many at once as the machine has cores.
pub(crate) struct Processes {
    time: Duration,
    memory: usize,
    cores: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Processes {
    /// Each takes at most this time on the clock, and this many bytes of memory.
    pub(crate) fn new(time: Duration, memory: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { time, memory, cores, free: Mutex::new(cores), freed: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more process may be started.
    fn turn(&self) -> Turn<'_> {
        let mut free = self.free();
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Turn(self)
    }

    fn start(&self) -> io::Result<Running> {
        let threads = self.cores.min(MAX_THREADS);
        // All threads together; the clock is looked at here.
        let seconds = (self.time.as_secs() + 1).saturating_mul(threads as u64);
        let mut command = system::this_program()?;
        command
            .args(["compile-worker", "--seconds", &seconds.to_string(), "--memory", &self.memory.to_string()])
            .env_clear()
            .env("RAYON_NUM_THREADS", threads.to_string())
            .current_dir(std::path::MAIN_SEPARATOR_STR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().map(Running)
    }

    /// What a process wrote, how it ended, and whether it had to be stopped.
    fn run(&self, job: &Job<'_>) -> io::Result<(Vec<u8>, ExitStatus, bool)> {
        let mut running = self.start()?;
        let (Some(mut input), Some(output)) = (running.0.stdin.take(), running.0.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let running = Mutex::new(running);
        let end = || running.lock().unwrap_or_else(PoisonError::into_inner).end();
        thread::scope(|scope| {
            let (read, is_read) = sync_channel::<()>(0);
            let watch = scope.spawn(move || {
                let late = is_read.recv_timeout(self.time) == Err(RecvTimeoutError::Timeout);
                (late, end())
            });
            // One that has ended reads nothing: how it ended tells more than that. The pipe stays open until it has, for
            // its end means that nobody waits.
            let _ = job.send(&mut input);
            let mut answer = Vec::new();
            let taken = output.take(job.max_answer_bytes() as u64 + 1).read_to_end(&mut answer);
            drop(read);
            let (late, status) = watch.join().map_err(|_| io::Error::other("nobody watched it"))?;
            taken?;
            Ok((answer, status?, late))
        })
    }
}

impl Compiler for Processes {
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, Failure> {
        let _turn = self.turn();
        let (answer, status, late) =
            self.run(job).map_err(|error| Failure::System(format!("cannot run the compiler process: {error}")))?;
        let (time, memory) = (self.time, size_in_words(self.memory));
        if late || system::was_out_of_time(status) {
            return Err(Failure::Program(format!(
                "compilation timed out after {time:?}; raise the limit with `--compile-timeout`"
            )));
        }
        if system::broke_off(status) {
            return Err(Failure::Program(format!(
                "compiling it takes more than {memory} of memory, or breaks the compiler; where you trust it to end, \
                 `--compile-memory` gives it more"
            )));
        }
        // It refuses such code itself; one that sends it all the same was led to it by the program.
        if answer.len() > job.max_answer_bytes() {
            return Err(Failure::Program("its compiled code is too large".to_owned()));
        }
        if !status.success() {
            return Err(Failure::System(format!("the compiler process ended early: {status}")));
        }
        Ok(answer)
    }
}

/// The right to run one process.
struct Turn<'a>(&'a Processes);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

/// A process, which ends at the latest with this.
struct Running(Child);

impl Running {
    /// Ends it, whatever it does, and tells how it ended; one that has ended keeps its own end.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _ = self.0.kill();
        self.0.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::path::Path;
    use std::process::{Command, ExitStatus};

    use rustix::process::Signal;

    /// The file that runs, where the system has a name for it: what lies at its path may be another version by now.
    const ITSELF: &str = "/proc/self/exe";

    pub(super) fn this_program() -> io::Result<Command> {
        let mut command = match Path::new(ITSELF).exists() {
            true => Command::new(ITSELF),
            false => Command::new(std::env::current_exe()?),
        };
        command.arg0("toolcrib");
        Ok(command)
    }

    /// Whether the system stopped it for its processor time.
    pub(super) fn was_out_of_time(status: ExitStatus) -> bool {
        status.signal() == Some(Signal::XCPU.as_raw())
    }

    /// Whether it ended as a process does that gets no more memory.
    pub(super) fn broke_off(status: ExitStatus) -> bool {
        [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL]
            .iter()
            .any(|signal| status.signal() == Some(signal.as_raw()))
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::process::{Command, ExitStatus};

    /// How Windows ends a process that aborts.
    const FAST_FAIL: i32 = 0xC000_0409_u32.cast_signed();

    pub(super) fn this_program() -> io::Result<Command> {
        Ok(Command::new(std::env::current_exe()?))
    }

    /// No such limit is known here.
    pub(super) fn was_out_of_time(_: ExitStatus) -> bool {
        false
    }

    pub(super) fn broke_off(status: ExitStatus) -> bool {
        status.code() == Some(FAST_FAIL)
    }
}
