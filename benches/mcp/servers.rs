//! Processes of the servers: the one that does nothing, toolcrib over both transports, and a command of the user.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::built::{TOOLCRIB, guest, target};
use crate::conversation::Transport;

/// Time after which all processes are killed, so that a server that never answers ends the benchmark.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Folder of toolcrib's state, and the processes, which end with it.
pub(crate) struct Servers {
    folder: TempDir,
    processes: Arc<Mutex<Vec<Child>>>,
}

impl Servers {
    pub(crate) fn new() -> io::Result<Self> {
        let servers = Self { folder: TempDir::new()?, processes: Arc::default() };
        let processes = servers.processes.clone();
        thread::spawn(move || {
            thread::sleep(MAX_TIME);
            kill(&processes);
        });
        Ok(servers)
    }

    /// Starts the server that does nothing, over standard streams.
    pub(crate) fn nothing_over_stdio(&self, text: &str) -> io::Result<Transport> {
        self.over_stdio(Command::new(std::env::current_exe()?).args(["nothing", "stdio", text]))
    }

    /// Starts the server that does nothing, over HTTP.
    pub(crate) fn nothing_over_http(&self, text: &str) -> io::Result<Transport> {
        let address = self.over_http(Command::new(std::env::current_exe()?).args(["nothing", "http", text]))?;
        Transport::http(address, None)
    }

    /// Starts toolcrib with the echo of the tests, over standard streams.
    pub(crate) fn toolcrib_over_stdio(&self) -> io::Result<Transport> {
        self.over_stdio(self.toolcrib().arg("--tools").arg(guest("echo")))
    }

    /// Starts toolcrib with the echo of the tests and a token, over HTTP, and connects twice. The limit of requests in a
    /// second is raised: one client exceeds it.
    pub(crate) fn toolcrib_over_http(&self) -> io::Result<[Transport; 2]> {
        let created = self.toolcrib().args(["token", "new", "bench"]).stdin(Stdio::null()).output()?;
        let token = String::from_utf8_lossy(&created.stdout).trim().to_owned();
        if token.is_empty() {
            return Err(io::Error::other(format!("no token: {}", String::from_utf8_lossy(&created.stderr))));
        }
        let flags = ["--http=127.0.0.1:0", "--max-rate=1000000", "--tools"];
        let address = self.over_http(self.toolcrib().args(flags).arg(guest("echo")))?;
        Ok([Transport::http(address, Some(token.clone()))?, Transport::http(address, Some(token))?])
    }

    /// Starts another server over standard streams, in this process's environment.
    pub(crate) fn other(&self, command: &[OsString]) -> io::Result<Transport> {
        self.over_stdio(Command::new(&command[0]).args(&command[1..]))
    }

    /// Command of `toolcrib mcp`, with its state in the folder and an empty environment.
    fn toolcrib(&self) -> Command {
        let mut command = Command::new(TOOLCRIB);
        let folder = self.folder.path();
        command.arg("mcp").current_dir(folder).env_clear().env("HOME", folder);
        command.env("TOOLCRIB_CACHE_DIR", target().join("test-cache"));
        command
    }

    fn over_stdio(&self, command: &mut Command) -> io::Result<Transport> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        self.keep(child);
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        Ok(Transport::Lines { input, output: BufReader::new(output) })
    }

    /// Starts a server, and reads its address from what it prints.
    fn over_http(&self, command: &mut Command) -> io::Result<SocketAddr> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let output = child.stderr.take();
        self.keep(child);
        let mut lines = BufReader::new(output.ok_or_else(|| io::Error::other("no pipe"))?).lines();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("serving http://")?.1.strip_suffix("/mcp")?.parse().ok()
        });
        // A full pipe would block the server.
        thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        address.ok_or_else(|| io::Error::other("the server ended without an address"))
    }

    fn keep(&self, child: Child) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        kill(&self.processes);
    }
}

fn kill(processes: &Mutex<Vec<Child>>) {
    for mut child in processes.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // It may have ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}
