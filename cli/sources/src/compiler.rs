//! Compiles programs in child processes of this program, one per program and each with its own limits. A process is killed
//! at its limit or when its job is dropped.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcrib::compiler::{CompileError, Compiler, Job};
use toolcrib_base::parse::size_in_words;

/// Maximum threads per process: more would need more memory and contend.
const MAX_THREADS: usize = 4;

/// Maximum wall-clock time of a process, in multiples of its processor time: other work may use most of the machine.
const MAX_WAIT: u32 = 5;
/// Wall-clock time that every process may have. A busy machine takes this long for a second of processor time.
const MIN_WAIT: Duration = Duration::from_secs(20);

/// Starts compiler processes, at most one per core at a time.
pub(crate) struct CompilerProcesses {
    /// Maximum processor time of a process, in seconds.
    seconds: u64,
    memory: usize,
    cores: usize,
    free: Mutex<usize>,
    freed: Condvar,
    /// Names that can start this program, best first.
    programs: Vec<PathBuf>,
    /// Position of the first name that may work.
    first: AtomicUsize,
}

impl CompilerProcesses {
    /// Limits each process to this processor time, in whole seconds at least as long, and this many bytes of memory.
    pub(crate) fn new(time: Duration, memory: usize) -> Self {
        Self::of(system::programs(), time, memory)
    }

    fn of(programs: Vec<PathBuf>, time: Duration, memory: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (free, freed) = (Mutex::new(cores), Condvar::new());
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self { seconds, memory, cores, free, freed, programs, first: AtomicUsize::new(0) }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maximum wall-clock time of a process.
    fn wait(&self) -> Duration {
        Duration::from_secs(self.seconds).saturating_mul(MAX_WAIT).max(MIN_WAIT)
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

    fn start(&self, program: &Path) -> io::Result<Running> {
        let threads = self.cores.min(MAX_THREADS);
        let mut command = system::command(program);
        command
            .args(["compile-worker", "--seconds", &self.seconds.to_string(), "--memory", &self.memory.to_string()])
            .env_clear()
            .env("RAYON_NUM_THREADS", threads.to_string())
            .current_dir(std::path::MAIN_SEPARATOR_STR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let bounds = system::Bounds::new(self.seconds, self.memory)?;
        let running = Running { child: bounds.spawn(&mut command)?, bounds };
        // A process that cannot be bound is killed here, before it gets its job.
        running.bounds.hold(&running.child)?;
        Ok(running)
    }

    /// Runs this program by the first of its names that works, and returns the output and exit status of the process, and
    /// `true` if it was killed after its wall-clock time.
    fn run(&self, job: &Job<'_>) -> io::Result<(Vec<u8>, ExitStatus, bool)> {
        let mut failed = Err(io::Error::other("the path of this program is unknown; on Linux, mount `/proc`"));
        for (at, program) in self.programs.iter().enumerate().skip(self.first.load(Relaxed)) {
            failed = self.run_as(program, job);
            if !failed.as_ref().map_or(true, |(answer, status, late)| is_foreign(answer, *status, *late)) {
                self.first.store(at, Relaxed);
                break;
            }
        }
        failed
    }

    fn run_as(&self, program: &Path, job: &Job<'_>) -> io::Result<(Vec<u8>, ExitStatus, bool)> {
        let mut running = self.start(program)?;
        let (Some(mut input), Some(output)) = (running.child.stdin.take(), running.child.stdout.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let running = Mutex::new(running);
        let wait = self.wait();
        let end = || running.lock().unwrap_or_else(PoisonError::into_inner).end();
        thread::scope(|scope| {
            let (read, is_read) = sync_channel::<()>(0);
            let watch = scope.spawn(move || {
                let late = is_read.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
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
        let (seconds, memory) = (self.seconds, size_in_words(self.memory));
        if system::was_out_of_time(status) {
            return Err(CompileError::Program(format!(
                "compilation took more than {seconds} s of processor time; raise the limit with `--set limits.compile_timeout=TIME`"
            )));
        }
        if late {
            let wait = self.wait().as_secs();
            return Err(CompileError::system(format!(
                "compilation did not end within {wait} s: the machine is overloaded"
            )));
        }
        if system::broke_off(status) {
            return Err(CompileError::Program(format!(
                "compilation exceeded {memory} of memory or crashed the compiler; if you trust the program, \
                 raise the limit with `--set limits.compile_memory=SIZE`"
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

/// Returns `true` if a process ended like another program than this one: by itself, and without an answer.
fn is_foreign(answer: &[u8], status: ExitStatus, late: bool) -> bool {
    answer.is_empty() && !late && status.code().is_some_and(|code| code != 0 && !system::broke_off(status))
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
    use std::path::{Path, PathBuf};
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

    /// Names of this program. Under an emulator of another processor, [`ITSELF`] may be the emulator.
    pub(super) fn programs() -> Vec<PathBuf> {
        let itself = Some(PathBuf::from(ITSELF)).filter(|path| path.exists());
        itself.into_iter().chain(std::env::current_exe()).collect()
    }

    pub(super) fn command(program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg0("toolcrib");
        command
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Creates compiler processes with three program names: another program, a missing one, and `last`.
    fn processes(last: &str) -> CompilerProcesses {
        let programs = ["/bin/false", "/no/such/program", last].map(PathBuf::from).to_vec();
        CompilerProcesses::of(programs, Duration::from_secs(20), 1 << 30)
    }

    fn job() -> Job<'static> {
        let mut sent = b"toolcrib ".to_vec();
        sent.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        sent.extend_from_slice(b" compiles\n\0\x08\0\0\0\0\0\0\0\0asm\x0d\0\x01\0");
        Job::receive(sent.as_slice()).expect("a job")
    }

    #[test]
    fn a_name_that_starts_another_program_or_none_is_passed_over_and_not_tried_again() {
        // It ends as if it had answered.
        let processes = processes("/bin/true");
        for _ in 0..2 {
            assert!(processes.compile(&job()).expect("a status of success").is_empty());
            assert_eq!(processes.first.load(Relaxed), 2);
        }
    }

    #[test]
    fn the_last_failure_is_reported_if_no_name_works() {
        let Err(CompileError::System { message, .. }) = processes("/bin/false").compile(&job()) else {
            panic!("failed")
        };
        assert!(message.starts_with("the compiler process ended early: exit status: 1"), "{message}");
    }
}
