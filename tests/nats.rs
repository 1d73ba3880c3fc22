//! A NATS server of a test, where there is one: a port of 127.0.0.1 that the system chooses, with or without a user. It ends with the
//! test program. A plain client reads and writes what goes over the wire.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Time to wait for anything on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Waits for its input to end, which happens with the test program, and then ends the server.
const WATCH: &str = r#""$@" >/dev/null 2>&1 & server=$!; cat >/dev/null; kill -KILL $server 2>/dev/null; wait $server"#;

/// Server.
pub(crate) struct Nats {
    folder: TempDir,
    program: PathBuf,
    user: Option<(&'static str, &'static str)>,
    pub(crate) port: u16,
    running: Option<Child>,
}

impl Nats {
    /// Starts a server; `None`, with a message, where there is none.
    pub(crate) fn start() -> Option<Self> {
        Self::start_for(None)
    }

    /// Starts a server that requires a user and a password.
    pub(crate) fn start_for(user: Option<(&'static str, &'static str)>) -> Option<Self> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&folders).map(|folder| folder.join("nats-server")).find(|path| path.is_file());
        let Some(program) = found else {
            eprintln!("SKIPPED: no `nats-server` in the search path: nothing is tested with workers over NATS");
            return None;
        };
        let mut nats = Self { folder: TempDir::new().unwrap(), program, user, port: 0, running: None };
        nats.run("-1");
        Some(nats)
    }

    /// Starts the server again, at the same port.
    pub(crate) fn resume(&mut self) {
        self.run(&self.port.to_string());
    }

    fn run(&mut self, port: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).arg(&self.program).args(["-a", "127.0.0.1", "-p", port]);
        command.arg("--ports_file_dir").arg(self.folder.path());
        if let Some((user, password)) = self.user {
            command.args(["--user", user, "--pass", password]);
        }
        let quiet = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.running = Some(quiet.spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        // The file of an earlier run was removed with it.
        while self.port == 0 {
            self.port = self.written_port().unwrap_or_default();
            assert!(Instant::now() < until, "the server writes its port in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        while !self.greets() {
            assert!(Instant::now() < until, "the server answers in time");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn written_port(&self) -> Option<u16> {
        let file = std::fs::read_dir(self.folder.path()).ok()?.flatten().next()?;
        let written: Value = serde_json::from_str(&std::fs::read_to_string(file.path()).ok()?).ok()?;
        written["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
    }

    fn greets(&self) -> bool {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO")
    }

    /// Stops the server, which closes all connections.
    pub(crate) fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.stdin.take());
            let _ = running.wait();
        }
    }

    /// Address of the server.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Connects a plain client.
    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Message on the wire.
#[derive(Debug, Clone)]
pub(crate) struct WireMessage {
    pub(crate) subject: String,
    pub(crate) reply: Option<String>,
    pub(crate) payload: Vec<u8>,
}

impl WireMessage {
    /// The first line of the message as JSON; null if it is none.
    pub(crate) fn head(&self) -> Value {
        let line = self.payload.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(line).unwrap_or_default()
    }
}

/// Plain client.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    subscriptions: u32,
    waiting: Vec<WireMessage>,
}

impl Wire {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut wire = Self { stream: BufReader::new(stream), subscriptions: 0, waiting: Vec::new() };
        let greeting = wire.line();
        assert!(greeting.starts_with("INFO"), "{greeting}");
        wire.write(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n");
        wire.settle();
        wire
    }

    /// Waits until the server has taken everything that was written.
    fn settle(&mut self) {
        self.write(b"PING\r\n");
        while let Some(message) = self.read() {
            self.waiting.push(message);
        }
    }

    /// Subscribes, and returns once the server knows it.
    pub(crate) fn subscribe(&mut self, subject: &str, queue: &str) {
        self.subscriptions += 1;
        let line = format!("SUB {subject} {queue} {}\r\n", self.subscriptions);
        self.write(line.as_bytes());
        self.settle();
    }

    pub(crate) fn publish(&mut self, subject: &str, reply: &str, payload: &[u8]) {
        self.write(format!("PUB {subject} {reply} {}\r\n", payload.len()).as_bytes());
        self.write(payload);
        self.write(b"\r\n");
    }

    /// Waits for the next message.
    pub(crate) fn next(&mut self) -> WireMessage {
        if !self.waiting.is_empty() {
            return self.waiting.remove(0);
        }
        loop {
            if let Some(message) = self.read() {
                return message;
            }
        }
    }

    /// Reads one operation of the server: a message, or `None` for the answer to a ping.
    fn read(&mut self) -> Option<WireMessage> {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["PONG"] => return None,
                ["PING"] => self.write(b"PONG\r\n"),
                [kind @ ("MSG" | "HMSG"), subject, _, rest @ ..] => {
                    let numbers = if *kind == "MSG" { 1 } else { 2 };
                    let reply = (rest.len() > numbers).then(|| rest[0].to_owned());
                    let mut payload = vec![0; rest.last().unwrap().parse::<usize>().unwrap() + 2];
                    let subject = (*subject).to_owned();
                    self.stream.read_exact(&mut payload).unwrap();
                    payload.truncate(payload.len() - 2);
                    return Some(WireMessage { subject, reply, payload });
                }
                _ => assert!(!line.is_empty() && !line.starts_with("-ERR"), "{line}"),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }
}
