//! Home, folder with a few tools, and servers with scripted responses.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answering::{Answer, Request, Server};

use crate::crib::{Ran, target};
use crate::screen::Stage;

/// Copies its standard input to standard output.
const ECHO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 60000))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 4) (i32.load (i32.const 8)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Sleeps for a second and answers nothing.
const NAP: &str = r#"(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 1000000000))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"#;

/// Never ends.
const SPIN: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (loop $for_ever (br $for_ever))))"#;

/// Opens `../secret.txt` beside its first folder, and fails with an error object if access is refused.
const PEEK: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "../secret.txt")
  (data (i32.const 128) "{\"error\":\"not let in\"}")
  (func (export "_start")
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 13) (i32.const 0)
                    (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 32))
      (then
        (i32.store (i32.const 0) (i32.const 128))
        (i32.store (i32.const 4) (i32.const 22))
        (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $exit (i32.const 1))))))"#;

const TOOLS: [(&str, &str); 4] = [("echo", ECHO), ("nap", NAP), ("spin", SPIN), ("peek", PEEK)];

/// Working folder with `tools.json` and its programs.
pub(super) struct Place {
    root: TempDir,
}

/// Result of a run.
pub(super) type End = Ran;

impl Place {
    pub(super) fn new() -> Self {
        let place = Self { root: tempfile::tempdir().expect("a temporary folder") };
        let mut tools = Vec::new();
        for (name, text) in TOOLS {
            let program = format!("./tools/bin/{name}");
            place.write(&format!("{program}.wasm"), wat::parse_str(text).expect("a module"));
            tools.push(json!({
                "name": name,
                "description": format!("the tool {name}"),
                "schema": { "type": "object", "properties": { "n": { "type": "integer" } } },
                "command": [program],
            }));
        }
        place.write("tools.json", json!({ "tools": tools }).to_string());
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
        fs::write(path, content).expect("a file");
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    pub(super) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Command `run` of the program with these arguments, and no variable from outside. All tests share the compiled
    /// tools.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command
            .arg("run")
            .args(args)
            .current_dir(self.root.path())
            .env_clear()
            .env("HOME", self.root.path())
            .env("TOOLCRIB_AUDIT_DIR", self.path("audit"))
            .env("TOOLCRIB_CACHE_DIR", target().join("test-cache"))
            .stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> End {
        end(&mut self.command(args))
    }

    /// Runs against the server at `uri`, with retries without delay.
    pub(super) fn ask(&self, uri: &str, args: &[&str]) -> End {
        self.run(&[&["--base-url", uri, "--model", "m", "--set", "model.http_retry_backoff=1ms"], args].concat())
    }

    pub(super) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Writes a script to a file.
    pub(super) fn script(&self, turns: Value) -> String {
        let name = "script.json";
        self.write(name, json!({ "prompt": "go", "turns": turns }).to_string());
        name.to_owned()
    }

    /// Outcomes of the calls in the audit log, in order.
    pub(super) fn audited(&self) -> Vec<String> {
        let Ok(folder) = fs::read_dir(self.path("audit")) else { return Vec::new() };
        let files = folder.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
        let text: String = files.map(|path| fs::read_to_string(path).unwrap_or_default()).collect();
        let record = |line: &str| serde_json::from_str::<Value>(line).ok();
        text.lines().filter_map(record).filter_map(|record| Some(record["outcome"].as_str()?.to_owned())).collect()
    }
}

pub(super) fn end(command: &mut Command) -> End {
    Ran::of(command)
}

impl Stage for Place {
    fn program(&self, arguments: &[&str]) -> Command {
        self.command(arguments)
    }
}

impl Ran {
    /// Standard output as events.
    pub(super) fn events(&self) -> Vec<Value> {
        let event = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(event).collect()
    }

    /// Asserts that the run ended with this code.
    #[track_caller]
    pub(super) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// Server with these responses.
pub(super) fn server(responses: impl IntoIterator<Item = Answer>) -> Server {
    server_at("/v1/chat/completions", responses)
}

/// Server with these responses at a path.
pub(super) fn server_at(at: &str, responses: impl IntoIterator<Item = Answer>) -> Server {
    Server::start().answers(at, responses)
}

/// Address for `--base-url`.
pub(super) fn base(server: &Server) -> String {
    format!("{}/v1", server.uri())
}

/// Bodies of the requests so far.
pub(super) fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(Request::json).collect()
}

/// Values of the header `name` in the requests so far.
pub(super) fn headers(server: &Server, name: &str) -> Vec<String> {
    server.received().iter().map(|request| request.header(name).unwrap_or_default().to_owned()).collect()
}

/// Complete response with this message.
pub(super) fn message(message: Value) -> Answer {
    Answer::new(200).json(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }))
}

/// Complete response with this text.
pub(super) fn says(text: &str) -> Answer {
    message(json!({ "role": "assistant", "content": text }))
}

/// Complete response that calls tools: name, identifier, arguments.
pub(super) fn calls(calls: &[(&str, &str, &str)]) -> Answer {
    let call = |(name, id, arguments): &(&str, &str, &str)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    message(json!({ "role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>() }))
}

/// Stream with the data of these events.
pub(super) fn stream(data: &[Value]) -> Answer {
    let text: String = data
        .iter()
        .map(|data| match data {
            Value::String(text) => format!("data: {text}\n\n"),
            data => format!("data: {data}\n\n"),
        })
        .collect();
    Answer::new(200).raw(text, "text/event-stream")
}

/// Part of a stream with this delta.
pub(super) fn delta(delta: Value) -> Value {
    json!({ "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// Last part of a stream.
pub(super) fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// Server that answers each connection with the next of these texts, unchanged, and closes it.
pub(super) fn blunt_server(texts: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for text in texts {
            let Ok((mut connection, _)) = listener.accept() else { return };
            read_request(&mut connection);
            let _ = connection.write_all(text.as_bytes());
        }
    });
    address
}

fn read_request(connection: &mut TcpStream) {
    connection.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") && connection.read(&mut byte).is_ok_and(|read| read == 1) {
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let _ = connection.read_exact(&mut vec![0; length.unwrap_or(0)]);
}
