//! A server that this program starts, as an MCP client does: messages over its standard streams. It is killed with every
//! process that it started, by its group or job object, at the end of the check, or when it is dropped.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::fault::{Fault, MAX_RECEIVED, ProgramMessages};
use super::message::answer;

/// Maximum bytes kept of standard error; the rest is read and dropped.
const MAX_SAID: u64 = 64 << 10;
/// Time in which a server ends after its input was closed, and in which its last output arrives.
const GRACE: Duration = Duration::from_secs(1);

/// Running server.
pub struct ServerProcess {
    child: Child,
    group: system::Group,
    input: Option<ChildStdin>,
    output: BufReader<Take<ChildStdout>>,
    /// Reads standard error until its end.
    errors: JoinHandle<Vec<u8>>,
}

impl ServerProcess {
    /// Starts a program in its own group, with these variables in addition to this process's variables.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (String, String)>,
        folder: Option<&Path>,
    ) -> Result<Self, Fault> {
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let (mut child, group) = system::spawn(&mut command).map_err(Fault::Start)?;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Fault::Start(std::io::Error::other("the process has no pipes")));
        };
        let input = child.stdin.take();
        let output = BufReader::new(output.take(MAX_RECEIVED as u64));
        Ok(Self { child, group, input, output, errors: tokio::spawn(start_of(errors)) })
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(&mut self, request: &Value, id: u64) -> Result<Value, Fault> {
        self.send(request).await;
        let mut line = Vec::new();
        loop {
            line.clear();
            // A program that cannot be read has ended.
            let count = self.output.read_until(b'\n', &mut line).await.unwrap_or(0);
            if self.output.get_ref().limit() == 0 && line.last() != Some(&b'\n') {
                return Err(Fault::TooMuch);
            }
            let text = String::from_utf8_lossy(&line);
            match text.trim() {
                "" if count == 0 => return Err(Fault::Ended(ProgramMessages::default())),
                "" => {}
                text => {
                    if let Some(answer) = answer(text, id)? {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    /// Sends a message. A program that closed its input has ended, or ends: reading tells more.
    pub(super) async fn send(&mut self, message: &Value) {
        if let Some(input) = &mut self.input {
            let line = format!("{message}\n");
            if input.write_all(line.as_bytes()).await.is_ok() {
                let _ = input.flush().await;
            }
        }
    }

    /// Ends the program, and returns its messages. With `is_sound` it gets a moment to end by itself after the end of its input.
    pub(super) async fn end(mut self, is_sound: bool) -> ProgramMessages {
        self.input = None;
        if is_sound {
            let _ = timeout(GRACE, tokio::io::copy(&mut self.output, &mut tokio::io::sink())).await;
        }
        // Before the process is waited for: until then its number belongs to its group.
        self.group.kill(&self.child);
        let _ = self.child.start_kill();
        let _ = timeout(GRACE, self.child.wait()).await;
        let bytes = timeout(GRACE, &mut self.errors).await;
        match bytes {
            Ok(Ok(bytes)) => ProgramMessages::read(&String::from_utf8_lossy(&bytes)),
            _ => ProgramMessages::default(),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.kill(&self.child);
        self.errors.abort();
    }
}

/// Reads to the end, and returns the start.
async fn start_of(mut errors: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut start = Vec::new();
    if (&mut errors).take(MAX_SAID).read_to_end(&mut start).await.is_ok() {
        let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    }
    start
}

#[cfg(unix)]
mod system {
    use std::io;

    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::{Child, Command};

    /// Process group with the number of its first process.
    pub(super) struct Group;

    /// Starts a process in a group of its own, so that its children can be killed with it.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
        Ok((command.process_group(0).spawn()?, Group))
    }

    impl Group {
        /// Kills the group of a process that was not waited for.
        pub(super) fn kill(&self, first: &Child) {
            let number = first.id().and_then(|number| Pid::from_raw(number.cast_signed()));
            if let Some(group) = number {
                // It has ended otherwise.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }
}

#[cfg(windows)]
mod system {
    use std::io;

    use tokio::process::{Child, Command};

    use toolcrib_base::windows::job_object::{JobObject, ProcessHandle, SUSPENDED};

    /// Job object with a process and all that it starts.
    pub(super) struct Group(JobObject);

    /// Starts a process in a job object of its own, so that its children can be killed with it.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
        let job = JobObject::new()?;
        // The child is killed when it is dropped.
        let child = command.creation_flags(SUSPENDED).spawn()?;
        let process = child.raw_handle().ok_or_else(|| io::Error::other("the process has no handle"))?;
        job.admit(&ProcessHandle(process))?;
        Ok((child, Group(job)))
    }

    impl Group {
        /// Kills all processes.
        pub(super) fn kill(&self, _first: &Child) {
            self.0.end();
        }
    }
}
