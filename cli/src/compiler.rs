//! Compiles programs in child processes of this program, one per program and each with its own limits. A process is killed
//! at its limit or when its job is dropped.

use std::io::{self, Read};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcrib::compiler::{CompileError, Compiler, Job};

use crate::options::size_in_words;

/// Maximum threads per process: more would need more memory and contend.
const MAX_THREADS: usize = 4;

/// Starts compiler processes, at most one per core at a time.
pub(crate) struct CompilerProcesses {
    time: Duration,
    memory: usize,
    cores: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl CompilerProcesses {
    /// Limits each process to this wall-clock time and this many bytes of memory.
    pub(crate) fn new(time: Duration, memory: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { time, memory, cores, free: Mutex::new(cores), freed: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for permission to start a process.
    fn acquire(&self) -> Permit<'_> {
        let mut free = self.free();
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit(self)
    }

    fn start(&self) -> io::Result<Running> {
        let threads = self.cores.min(MAX_THREADS);
        // Processor time of all threads; wall-clock time is watched here.
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
        let bounds = system::Bounds::new(seconds, self.memory)?;
        let running = Running { child: bounds.spawn(&mut command)?, bounds };
        // A process that cannot be bound is killed here, before it gets its job.
        running.bounds.hold(&running.child)?;
        Ok(running)
    }

    /// Returns the output and exit status of a process, and `true` if it timed out.
    fn run(&self, job: &Job<'_>) -> io::Result<(Vec<u8>, ExitStatus, bool)> {
        let mut running = self.start()?;
        let (Some(mut input), Some(output)) = (running.child.stdin.take(), running.child.stdout.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let running = Mutex::new(running);
        let end = || running.lock().unwrap_or_else(PoisonError::into_inner).end();
        thread::scope(|scope| {
            let (read, is_read) = sync_channel::<()>(0);
            let watch = scope.spawn(move || {
                let late = is_read.recv_timeout(self.time) == Err(RecvTimeoutError::Timeout);
                (late, end())
            });
            // A write error means that the process has ended; its status tells more. The pipe stays open until then,
            // since closing it makes the process exit.
            let _ = job.send(&mut input);
            let mut answer = Vec::new();
            let taken = output.take(job.max_answer_bytes() as u64 + 1).read_to_end(&mut answer);
            drop(read);
            let (late, status) = watch.join().map_err(|_| io::Error::other("the watcher thread panicked"))?;
            taken?;
            Ok((answer, status?, late))
        })
    }
}

impl Compiler for CompilerProcesses {
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError> {
        let _permit = self.acquire();
        let (answer, status, late) =
            self.run(job).map_err(|error| CompileError::system("cannot run the compiler process").caused_by(error))?;
        let (time, memory) = (self.time, size_in_words(self.memory));
        if late || system::was_out_of_time(status) {
            return Err(CompileError::Program(format!(
                "compilation timed out after {time:?}; raise the limit with `--compile-timeout`"
            )));
        }
        if system::broke_off(status) {
            return Err(CompileError::Program(format!(
                "compilation exceeded {memory} of memory or crashed the compiler; if you trust the program, \
                 raise the limit with `--compile-memory`"
            )));
        }
        // The compiler refuses such code itself; a larger answer means that the program took it over.
        if answer.len() > job.max_answer_bytes() {
            return Err(CompileError::Program("its compiled code is too large".to_owned()));
        }
        if !status.success() {
            return Err(CompileError::system(format!("the compiler process ended early: {status}")));
        }
        Ok(answer)
    }
}

/// Permission to run one process.
struct Permit<'a>(&'a CompilerProcesses);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

/// A child process that is killed on drop.
struct Running {
    child: Child,
    /// Dropped after the process was killed.
    bounds: system::Bounds,
}

impl Running {
    /// Kills the process and returns its status; a process that has ended keeps its own status.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait()
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
    use std::process::{Child, Command, ExitStatus};

    use rustix::process::Signal;

    /// Bounds that the process takes by itself, before it reads its job.
    pub(super) struct Bounds;

    impl Bounds {
        pub(super) fn new(_seconds: u64, _memory: usize) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
            command.spawn()
        }

        pub(super) fn hold(&self, _process: &Child) -> io::Result<()> {
            Ok(())
        }
    }

    /// The running executable on Linux: the file at its path may have been replaced.
    const ITSELF: &str = "/proc/self/exe";

    pub(super) fn this_program() -> io::Result<Command> {
        let mut command = match Path::new(ITSELF).exists() {
            true => Command::new(ITSELF),
            false => Command::new(std::env::current_exe()?),
        };
        command.arg0("toolcrib");
        Ok(command)
    }

    /// `true` if the process exceeded its processor time.
    pub(super) fn was_out_of_time(status: ExitStatus) -> bool {
        status.signal() == Some(Signal::XCPU.as_raw())
    }

    /// `true` if the process ended like one that ran out of memory.
    pub(super) fn broke_off(status: ExitStatus) -> bool {
        [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL]
            .iter()
            .any(|signal| status.signal() == Some(signal.as_raw()))
    }
}

#[cfg(windows)]
#[path = "compiler_windows.rs"]
mod system;
