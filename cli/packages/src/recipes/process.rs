//! Processes that fetch and decode packages: each runs in a folder of its own, for a bounded time, with bounded output.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice};

/// Time limit of a process.
const MAX_TIME: Duration = Duration::from_mins(10);
/// Maximum bytes of its standard error that are read.
const MAX_ERRORS: u64 = 64 << 10;
/// Maximum number of lines of these that are shown.
const MAX_LINES: usize = 6;
/// Variables that a process without an environment keeps: it cannot start without them.
const NECESSARY: [&str; 3] = ["PATH", "SystemRoot", "PATHEXT"];

/// Process to run.
pub(super) struct Process<'a> {
    /// Names of programs; the first program that exists runs.
    pub(super) programs: &'a [&'a str],
    pub(super) arguments: Vec<&'a OsStr>,
    /// `true` if the settings of the user in the environment apply.
    pub(super) keeps_environment: bool,
    /// Maximum bytes of its standard output.
    pub(super) max_output: u64,
    /// Description for progress and errors, such as `fetching esbuild from npm`.
    pub(super) doing: String,
}

impl Process<'_> {
    /// Runs the process in a folder, and returns its standard output. The folder is empty, so that no settings of another one apply.
    ///
    /// # Errors
    ///
    /// No program exists, or it fails, takes too long or writes too much.
    pub(super) async fn run(self, folder: &Path) -> anyhow::Result<Vec<u8>> {
        for program in self.programs {
            match self.start(program, folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                child => {
                    let child = child.with_context(|| format!("cannot start `{program}`"))?;
                    return progress::during(self.doing.clone(), self.finish(child)).await;
                }
            }
        }
        let program = self.programs[0];
        let message = format!("`{program}` is needed for {}, and is not installed", self.doing);
        Err(Advice::new(message, format!("install `{program}`, or name the package's files with `--from=PATH`")).into())
    }

    fn start(&self, program: &str, folder: &Path) -> std::io::Result<Child> {
        let mut command = Command::new(program);
        if !self.keeps_environment {
            command.env_clear();
            command.envs(NECESSARY.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        command.args(&self.arguments).current_dir(folder).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    async fn finish(&self, mut child: Child) -> anyhow::Result<Vec<u8>> {
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::join!(read(output, self.max_output + 1), read(errors, MAX_ERRORS), child.wait()) };
        let ended = tokio::time::timeout(MAX_TIME, ended).await;
        let (output, errors, status) = ended.map_err(|_| anyhow!("{} took more than {MAX_TIME:?}", self.doing))?;
        let status = status?;
        if output.len() as u64 > self.max_output {
            bail!("{} gave more than the {} bytes allowed", self.doing, self.max_output);
        }
        if status.success() {
            return Ok(output);
        }
        let errors = String::from_utf8_lossy(&errors).into_owned();
        let lines = errors.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES).map(render::one_line);
        bail!("{} failed ({status}):\n  {}", self.doing, lines.collect::<Vec<_>>().join("\n  "))
    }
}

/// Reads at most `max` bytes, and closes the pipe: a process that writes more ends.
async fn read(from: Option<impl AsyncRead + Unpin>, max: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // The bytes before an error of the pipe count.
        let _ = from.take(max).read_to_end(&mut bytes).await;
    }
    bytes
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process<'_> {
        let arguments = ["-c", script].map(OsStr::new).to_vec();
        let doing = "trying".to_owned();
        Process { programs: &["no-such-program", "sh"], arguments, keeps_environment: false, max_output: 1000, doing }
    }

    #[tokio::test]
    async fn the_output_and_the_environment_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let run = async |script: &str| shell(script).run(folder.path()).await.map_err(|error| error.to_string());
        assert_eq!(
            run("echo \"$HOME$PWD\"").await.unwrap().len(),
            folder.path().canonicalize().unwrap().as_os_str().len() + 1
        );
        assert_eq!(
            run("while :; do echo endless; done").await.unwrap_err(),
            "trying gave more than the 1000 bytes allowed"
        );
        let failed =
            run("printf '\\033[2Jone\\n\\n' >&2; while :; do echo more >&2 || exit 3; done; exit 4").await.unwrap_err();
        assert!(failed.starts_with("trying failed (") && !failed.contains('\u{1b}'), "{failed}");
        assert_eq!(failed.lines().count(), 1 + MAX_LINES, "{failed}");
    }
}
