//! A scripted model: a server whose next answer depends on the number of steps with calls in the conversation that it is
//! sent. A request that is repeated after a kill so gets the same answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Maximum wait for a request.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// One answer of the model.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    /// Text, in the parts in which it is streamed.
    pub(super) parts: Vec<&'static str>,
    /// Calls: name, identifier and arguments.
    pub(super) calls: Vec<(&'static str, &'static str, Value)>,
}

/// Interruption of an answer, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// The request of this turn gets no answer.
    BeforeTurn(usize),
    /// The stream of this turn stops after its text.
    AfterText(usize),
    /// The request of this turn is refused for the moment.
    Busy(usize),
}

/// Requests with counted tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    All,
    /// Those with tools, and so none that a tool makes.
    WithTools,
    None,
}

/// Finds the number of the turn that answers the messages of a request.
type Position = fn(&[Value]) -> usize;

/// The server.
pub(super) struct Model {
    pub(super) address: String,
    bodies: Arc<Mutex<Vec<Value>>>,
    paused: Receiver<()>,
}

impl Model {
    /// Starts a server with these turns; the last one is repeated.
    pub(super) fn start(turns: Vec<Turn>, pause: Option<Pause>) -> Self {
        Self::counting(turns, pause, Counted::All)
    }

    /// Starts a server with two turns for each message of the user: a call, and an answer.
    pub(super) fn by_exchange(turns: Vec<Turn>) -> Self {
        Self::with(turns, None, Counted::All, |messages| {
            let asked = messages.iter().filter(|message| message["role"] == "user").count().max(1);
            2 * (asked - 1) + usize::from(messages.last().is_some_and(|message| message["role"] == "tool"))
        })
    }

    /// Starts a server that counts the tokens of these requests alone.
    pub(super) fn counting(turns: Vec<Turn>, pause: Option<Pause>, counted: Counted) -> Self {
        let steps = |messages: &[Value]| messages.iter().filter(|message| message["tool_calls"].is_array()).count();
        Self::with(turns, pause, counted, steps)
    }

    /// Starts a server that finds the number of its turn by the messages of a request.
    fn with(turns: Vec<Turn>, pause: Option<Pause>, counted: Counted, turn: Position) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (sender, paused) = mpsc::channel();
        let (log, pause) = (bodies.clone(), Arc::new(Mutex::new(pause)));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else { return };
                let (turns, log, pause, sender) = (turns.clone(), log.clone(), pause.clone(), sender.clone());
                thread::spawn(move || serve(connection, (&turns, turn), &log, &pause, &sender, counted));
            }
        });
        Self { address, bodies, paused }
    }

    /// Starts a server that answers each request by its body, with a text and a usage.
    pub(super) fn answering(answer: impl Fn(&Value) -> (String, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (log, (_, paused)) = (bodies.clone(), mpsc::channel());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { return };
                let Some(body) = request(&mut connection) else { continue };
                let (text, usage) = answer(&body);
                log.lock().unwrap().push(body);
                whole_text(&mut connection, &text, &[], &usage);
            }
        });
        Self { address, bodies, paused }
    }

    /// Waits until the server has paused.
    pub(super) fn until_paused(&self) {
        self.paused.recv_timeout(MAX_WAIT).expect("a pause");
    }

    /// Bodies of the requests so far.
    pub(super) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// Messages of the last request, without the text of the host about the tools.
    pub(super) fn last_messages(&self) -> Vec<Value> {
        let body = self.bodies().pop().expect("a request");
        let messages = body["messages"].as_array().expect("messages").iter();
        messages.filter(|message| message["role"] != "system").cloned().collect()
    }
}

fn serve(
    mut connection: TcpStream,
    (turns, turn): (&[Turn], Position),
    log: &Mutex<Vec<Value>>,
    pause: &Mutex<Option<Pause>>,
    paused: &Sender<()>,
    counted: Counted,
) {
    let Some(body) = request(&mut connection) else { return };
    let at = body["messages"].as_array().map_or(0, |messages| turn(messages)).min(turns.len() - 1);
    log.lock().unwrap().push(body.clone());
    let is_now = |wanted: Pause| {
        let mut pause = pause.lock().unwrap();
        let found = *pause == Some(wanted);
        if found {
            *pause = None;
        }
        found
    };
    if is_now(Pause::BeforeTurn(at)) {
        let _ = paused.send(());
        return hang(&connection);
    }
    if is_now(Pause::Busy(at)) {
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = connection.write_all(head.as_bytes());
        return;
    }
    let turn = &turns[at];
    let is_counted = counted == Counted::All || counted == Counted::WithTools && body["tools"].is_array();
    let usage = if is_counted { usage() } else { Value::Null };
    if body["stream"] == true {
        stream(&mut connection, turn, &usage, is_now(Pause::AfterText(at)), paused)
    } else {
        whole(&mut connection, turn, &usage)
    }
}

/// Keeps a connection open until the other side closes it.
fn hang(mut connection: &TcpStream) {
    let _ = connection.set_read_timeout(Some(MAX_WAIT));
    let _ = connection.read(&mut [0; 64]);
}

fn request(connection: &mut TcpStream) -> Option<Value> {
    connection.set_read_timeout(Some(MAX_WAIT)).ok()?;
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn calls(turn: &Turn) -> Vec<Value> {
    let call = |(index, (name, id, arguments)): (usize, &(&str, &str, Value))| {
        json!({ "index": index, "id": id, "type": "function",
            "function": { "name": name, "arguments": arguments.to_string() } })
    };
    turn.calls.iter().enumerate().map(call).collect()
}

fn usage() -> Value {
    json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 })
}

fn whole(connection: &mut TcpStream, turn: &Turn, usage: &Value) {
    whole_text(connection, &turn.parts.concat(), &calls(turn), usage);
}

fn whole_text(connection: &mut TcpStream, text: &str, calls: &[Value], usage: &Value) {
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let body = json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage }).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body.as_bytes()));
}

fn stream(connection: &mut TcpStream, turn: &Turn, usage: &Value, pauses: bool, paused: &Sender<()>) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = connection.write_all(head.as_bytes());
    let send = |mut connection: &TcpStream, data: &Value| {
        let text = match data {
            Value::String(text) => format!("data: {text}\n\n"),
            data => format!("data: {data}\n\n"),
        };
        let _ = connection.write_all(text.as_bytes()).and_then(|()| connection.flush());
    };
    let part = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    for text in &turn.parts {
        send(connection, &part(json!({ "content": text })));
        // Longer than the time between two lines with text in the file of the run.
        thread::sleep(Duration::from_millis(if pauses { 300 } else { 5 }));
    }
    if pauses {
        let _ = paused.send(());
        return hang(connection);
    }
    if !turn.calls.is_empty() {
        send(connection, &part(json!({ "tool_calls": calls(turn) })));
    }
    send(connection, &json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }], "usage": usage }));
    send(connection, &json!("[DONE]"));
}
