//! Runs that pages start: child processes with the command line of the console, so that the same settings,
//! permissions and rules apply as to `toolcrib run`. Their calls wait for decisions in the console, and they end with it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde::Deserialize;
use toolcrib_base::render::{Advice, one_line};

/// Maximum runs of a console at once.
const MAX_RUNS: usize = 4;
/// Time within which a run states its identifier or an error. A run that compiles its tools first takes longer, and is found in the
/// list.
const MAX_START: Duration = Duration::from_secs(15);
/// Time for runs to end with the console, and between two looks at them.
const MAX_END: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(20);
/// Maximum standard error bytes that are kept for a message.
const MAX_STDERR: usize = 4 << 10;
/// Options of every run: its events, and the wait for decisions in the console.
const OPTIONS: [&str; 2] = ["--json", "--wait-approval=1h"];

/// Starter of runs.
#[derive(Debug)]
pub struct Launcher {
    program: PathBuf,
    /// Command line for a run, from its global options on.
    arguments: Vec<OsString>,
    runs: Mutex<RunningRuns>,
}

/// Runs that have not ended.
#[derive(Debug, Default)]
struct RunningRuns {
    all: Vec<RunProcess>,
    /// `true` once the console ends, so that no further run begins.
    is_closed: bool,
}

/// Input of a run.
#[derive(Debug, Default)]
pub(super) struct LaunchOptions<'a> {
    pub(super) prompt: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    /// Run to resume.
    pub(super) resume: Option<&'a str>,
}

#[derive(Debug)]
struct RunProcess {
    child: Child,
    /// Identifier of the run, once the process has stated it.
    id: Arc<OnceLock<String>>,
}

/// First event of a run that matters here.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    Start {
        run: Option<String>,
    },
    Error {
        message: String,
    },
    #[serde(other)]
    Other,
}

impl Launcher {
    /// Creates a starter with the command line of a run, from its global options and the name `run` on.
    ///
    /// # Errors
    ///
    /// The path of the program is not known.
    pub fn new(arguments: Vec<OsString>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program to start runs with")?;
        Ok(Self { program, arguments, runs: Mutex::default() })
    }

    /// Starts or resumes a run; returns its identifier, or `None` if it has not begun yet.
    ///
    /// # Errors
    ///
    /// Too many runs are under way, or the run refuses to begin.
    pub(super) fn start(&self, options: &LaunchOptions<'_>) -> anyhow::Result<Option<String>> {
        let mut runs = self.under_way();
        if runs.is_closed {
            return Err(anyhow!("the console ends"));
        }
        if runs.all.len() >= MAX_RUNS {
            let message = format!("{MAX_RUNS} runs of this console are under way");
            return Err(Advice::new(message, "wait until one ends, or stop one on its page").into());
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(OPTIONS);
        command.args(options.model.map(|model| format!("--model={model}")));
        command.args(options.resume.map(|id| format!("--resume={id}")));
        // Other users of the machine can read a command line.
        command.args(options.prompt.map(|_| "-"));
        let input = if options.prompt.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = system::spawn(&mut command).context("cannot start the run")?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let id = Arc::new(OnceLock::new());
        runs.all.push(RunProcess { child, id: id.clone() });
        drop(runs);
        if let (Some(mut input), Some(prompt)) = (input, options.prompt.map(str::to_owned)) {
            // It fails if the run has ended, which its output tells.
            thread::spawn(move || input.write_all(prompt.as_bytes()));
        }
        let (told, first) = channel();
        let (Some(output), Some(errors)) = (output, errors) else { return Err(anyhow!("the run has no output")) };
        thread::spawn(move || follow(output, errors, &id, &told));
        match first.recv_timeout(MAX_START) {
            Ok(begun) => begun.map_err(|message| anyhow!("the run did not begin: {message}")),
            Err(_) => Ok(None),
        }
    }

    /// Returns `true` if a run is one of this console and under way.
    pub(super) fn has(&self, id: &str) -> bool {
        self.under_way().all.iter().any(|run| run.is(id))
    }

    /// Interrupts a run of this console; `false` if it is not under way. It can be resumed.
    pub(super) fn stop(&self, id: &str) -> bool {
        let mut runs = self.under_way();
        let found = runs.all.iter_mut().find(|run| run.is(id));
        found.map(|run| system::interrupt(&mut run.child)).is_some()
    }

    /// Interrupts all runs, and kills those that do not end in time. No further run begins.
    pub(super) fn end(&self) {
        let mut runs = self.under_way();
        runs.is_closed = true;
        runs.all.iter_mut().for_each(|run| system::interrupt(&mut run.child));
        drop(runs);
        let until = Instant::now() + MAX_END;
        while !self.under_way().all.is_empty() && Instant::now() < until {
            thread::sleep(INTERVAL);
        }
        for run in &mut self.under_way().all {
            // It has ended otherwise.
            let _ = run.child.kill().and_then(|()| run.child.wait());
        }
    }

    /// Returns the runs that have not ended.
    fn under_way(&self) -> MutexGuard<'_, RunningRuns> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.all.retain_mut(|run| matches!(run.child.try_wait(), Ok(None)));
        runs
    }
}

impl RunProcess {
    fn is(&self, id: &str) -> bool {
        self.id.get().is_some_and(|own| own == id)
    }
}

/// Reads the events of a run until its end, and tells the first one that matters.
fn follow(
    output: ChildStdout,
    errors: ChildStderr,
    id: &OnceLock<String>,
    told: &Sender<Result<Option<String>, String>>,
) {
    let errors = thread::spawn(move || tail(errors));
    let mut output = BufReader::new(output);
    let mut line = String::new();
    while output.read_line(&mut line).is_ok_and(|length| length > 0) {
        let first = match serde_json::from_str(&line) {
            Ok(Event::Start { run }) => Ok(run),
            Ok(Event::Error { message }) => Err(one_line(&message)),
            _ => {
                line.clear();
                continue;
            }
        };
        if let Ok(Some(run)) = &first {
            // The only one that sets it.
            let _ = id.set(run.clone());
        }
        // Nobody waits any more for a run that begins late.
        let _ = told.send(first);
        // The rest is in the file of the run.
        let _ = io::copy(&mut output, &mut io::sink());
        return;
    }
    let text = errors.join().unwrap_or_default();
    let last = text.lines().rev().find(|line| line.starts_with("error:")).unwrap_or("it ended at once");
    let _ = told.send(Err(one_line(last.trim_start_matches("error:").trim())));
}

/// Reads standard error to its end, and returns its last part.
fn tail(mut errors: ChildStderr) -> String {
    let (mut kept, mut part) = (VecDeque::new(), [0; 1024]);
    while let Ok(length @ 1..) = errors.read(&mut part) {
        kept.extend(&part[..length]);
        kept.drain(..kept.len().saturating_sub(MAX_STDERR));
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process};

    /// Starts a process that no signal of the terminal reaches: the console passes them on.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        command.process_group(0).spawn()
    }

    /// Lets a process end as Ctrl-C does. It was not waited for, so that its number is its own.
    pub(super) fn interrupt(child: &mut Child) {
        if let Some(number) = Pid::from_raw(child.id().cast_signed()) {
            // It has ended otherwise.
            let _ = kill_process(number, Signal::INT);
        }
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::process::{Child, Command};

    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }

    /// Ends a process. Its run can be resumed.
    pub(super) fn interrupt(child: &mut Child) {
        // It has ended otherwise.
        let _ = child.kill();
    }
}
