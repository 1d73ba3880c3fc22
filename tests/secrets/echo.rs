//! Local server that returns the received secret in the way that the path requests, and a search for a value in every
//! encoding. Neither shares a line with the code under test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Ways to return a secret.
pub(super) const WAYS: [&str; 19] = [
    "plain",
    "json",
    "json-units",
    "base64",
    "base64-1",
    "base64-2",
    "base64url",
    "base64-lines",
    "percent",
    "percent-lower",
    "hex",
    "hex-upper",
    "html",
    "utf16",
    "bytes",
    "header",
    "headers",
    "trailer",
    "redirect",
];

/// Server that runs as long as the test.
pub(super) struct Echo {
    pub(super) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    /// Starts a server that returns `secret`, however it was sent.
    pub(super) fn start(secret: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hearing = hearing.clone();
                thread::spawn(move || answer(stream, secret, &hearing));
            }
        });
        Self { port, heard }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Host, as in a flag or a manifest.
    pub(super) fn host(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Heads of the requests so far.
    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, secret: &str, heard: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let way = path.trim_start_matches('/').split('?').next().unwrap_or_default().to_owned();
    heard.lock().unwrap().push(head);
    // A truncated response closes the connection.
    let _ = respond(&mut stream, &way, secret);
}

fn respond(stream: &mut TcpStream, way: &str, secret: &str) -> std::io::Result<()> {
    let each = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
    let body = match way {
        "plain" | "bytes" => secret.to_owned(),
        "json" => serde_json::json!({ "authorization": format!("Bearer {secret}") }).to_string(),
        "json-units" => each(&|byte| format!("\\u{byte:04x}")),
        "base64" => base64(secret.as_bytes()),
        "base64-1" => base64(format!("u{secret}:").as_bytes()),
        "base64-2" => base64(format!("ab{secret}x").as_bytes()),
        "base64url" => base64(secret.as_bytes()).replace('+', "-").replace('/', "_").replace('=', ""),
        "base64-lines" => {
            base64(secret.as_bytes()).as_bytes().chunks(5).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\r\n")
        }
        "percent" => each(&|byte| format!("%{byte:02X}")),
        "percent-lower" => each(&|byte| format!("%{byte:02x}")),
        "hex" => each(&|byte| format!("{byte:02x}")),
        "hex-upper" => each(&|byte| format!("{byte:02X}")),
        "html" => each(&|byte| format!("&#{byte};")),
        "utf16" => each(&|byte| format!("{}\0", char::from(byte))),
        _ => "nothing to see".to_owned(),
    };
    match way {
        "bytes" => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for byte in format!("{body}{}", ".".repeat(3000)).bytes() {
                write!(stream, "1\r\n{}\r\n", char::from(byte))?;
            }
            write!(stream, "0\r\n\r\n")
        }
        "trailer" => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-echo\r\n\r\n")?;
            write!(stream, "4\r\nbody\r\n0\r\nx-echo: {secret}\r\n\r\n")
        }
        "header" => write!(stream, "HTTP/1.1 200 OK\r\nX-Echo: {secret}\r\nContent-Length: 0\r\n\r\n"),
        "headers" => {
            let (one, two) = secret.split_at(secret.len() / 2);
            write!(stream, "HTTP/1.1 200 OK\r\nX-Echo: {one}\r\nX-Echo: {two}\r\nContent-Length: 0\r\n\r\n")
        }
        "redirect" => {
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: /quiet?key={secret}\r\nContent-Length: 0\r\n\r\n")
        }
        "packed" => write!(stream, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nzzzz"),
        "long" => {
            let body = "no secret here ".repeat(2000);
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }
        _ => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()),
    }
}

/// Standard base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    let groups = bytes.chunks(3).map(|group| {
        let word = (0..3).fold(0_u32, |word, at| word << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        let digit = |at: usize| char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at <= group.len() { digit(at) } else { '=' }).collect::<String>()
    });
    groups.collect()
}

/// Encoding in which `bytes` contain a value, if they do.
pub(super) fn found(bytes: &[u8], value: &str) -> Option<&'static str> {
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let units: String = value.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let html: String = value.bytes().map(|byte| format!("&#{byte};")).collect();
    let wide: String = value.chars().flat_map(|c| [c, '\0']).collect();
    // The characters that a group of three shares with its neighbours are left out.
    let inner = |before: &str| {
        let text = base64(format!("{before}{value}").as_bytes());
        let first = (before.len() * 8).div_ceil(6);
        text[first..(before.len() + value.len()) * 8 / 6].to_owned()
    };
    let lower = String::from_utf8_lossy(bytes).to_lowercase();
    let exact = String::from_utf8_lossy(bytes);
    let ways = [
        ("plain", lower.contains(&value.to_lowercase())),
        ("hexadecimal", lower.contains(&hex)),
        ("percent", lower.contains(&percent)),
        ("units", lower.contains(&units)),
        ("HTML", lower.contains(&html)),
        ("UTF-16", exact.contains(&wide)),
        ("base64", exact.contains(&inner(""))),
        ("base64 after one", exact.contains(&inner("a"))),
        ("base64 after two", exact.contains(&inner("ab"))),
    ];
    ways.into_iter().find(|(_, found)| *found).map(|(way, _)| way)
}
