//! Costs by the turns of a conversation, each with one call: a whole run, and one more turn with a server, which gets the
//! whole conversation.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::json;
use tempfile::TempDir;

use super::curve::{Axis, Unit, least};
use super::{TOOLCRIB, cache, guest, toolcrib};

const SIZES: [usize; 6] = [1, 10, 100, 200, 400, 1_000];
/// Bytes of the arguments of each call, and so of its result.
const TEXT: usize = 500;

pub(crate) fn axis() -> Axis {
    let [whole, resumed, loaded, show] = [
        "a whole `run` from a script",
        "one more turn, `run --continue`",
        "one more turn, `run --load-messages`",
        "`runs show`",
    ];
    let names = [whole, resumed, loaded, show];
    let mut axis = Axis::new("Turns of a conversation", "turns", Unit::Count, names);
    let server = server();
    for turns in SIZES {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path();
        script(&home.join("script.json"), turns);
        let echo = guest("echo").display().to_string();
        let tools = ["--tools", &echo, "--quiet", "--max-steps", "5000"];
        let from_script =
            |words: &[&str]| toolcrib(home, &[&["run", "--script", "script.json"], words, &tools].concat());
        axis.add(whole, turns, least(|| from_script(&["--no-keep"])));
        from_script(&["--save-messages", "messages.json"]);
        let id = newest_run(home);
        axis.add(show, turns, least(|| toolcrib(home, &["runs", "show", &id])));
        let model = ["run", "more", "--model", "m", "--api-key", "k", "--base-url", &server];
        let with_server = |words: &[&str]| least(|| toolcrib(home, &[&model[..], words, &tools].concat()));
        axis.add(loaded, turns, with_server(&["--no-keep", "--load-messages", "messages.json"]));
        axis.add(resumed, turns, with_server(&["--continue"]));
    }
    axis
}

/// Writes a script with this many turns that call a tool, and an answer.
fn script(path: &Path, turns: usize) {
    let call = json!({"name": "echo", "arguments": {"text": "x".repeat(TEXT)}});
    let mut all = vec![json!({"content": "next", "tool_calls": [call]}); turns];
    all.push(json!({"content": "done"}));
    fs::write(path, json!({"prompt": "go", "turns": all}).to_string()).expect("a script");
}

/// Identifier of the latest run.
fn newest_run(home: &Path) -> String {
    let mut command = Command::new(TOOLCRIB);
    command.args(["runs", "list", "--json"]).current_dir(home).env_clear().env("HOME", home);
    let output = command.env("TOOLCRIB_CACHE_DIR", cache()).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let runs: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    runs[0]["id"].as_str().expect("an identifier").to_owned()
}

/// Starts a model server that answers every request with the same text, and returns its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // It ends with this process.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}/v1")
}

/// Reads one request whole, and answers it.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let message = json!({"role": "assistant", "content": "done"});
    let body = json!({"choices": [{"index": 0, "message": message}]}).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
