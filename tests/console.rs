//! `toolcrib console`: who reaches its pages, what they show of hostile texts and of a log that was changed, decisions in them, and
//! what keeps them current.
//! The browser here writes plain requests, so that it can also write those that no browser would.

mod access;
mod decisions;
mod export;
mod figures;
mod live;
mod pages;
mod starting;
mod trials;
mod trust;

use std::cell::OnceCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::crib::Crib;

/// Time within which an answer comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Console on a free port.
struct Console {
    child: Child,
    address: SocketAddr,
    /// Tokens of the printed addresses.
    tokens: Vec<String>,
}

/// Answer of a console.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Session in a browser.
struct Browser<'c> {
    console: &'c Console,
    /// Path of the pages, with a `/` at its end.
    path: String,
    cookie: String,
    /// Token of its forms, once a page had one.
    form_token: OnceCell<String>,
}

impl Console {
    fn start(crib: &Crib, flags: &[&str]) -> Self {
        let mut command = crib.toolcrib(&[&["console"], flags].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let number = 1 + flags.iter().filter(|flag| ["--share-read", "--start-runs"].contains(flag)).count();
        let mut lines = vec![String::new(); number];
        for line in &mut lines {
            output.read_line(line).unwrap();
        }
        let mut errors = child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        let parts = |line: &String| {
            let (address, token) = line.trim().strip_prefix("http://")?.split_once("/?token=")?;
            Some((address.parse::<SocketAddr>().ok()?, token.to_owned()))
        };
        let all: Vec<_> = lines.iter().map(|line| parts(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
        Self { child, address: all[0].0, tokens: all.into_iter().map(|(_, token)| token).collect() }
    }

    /// Sends bytes, and reads until the console closes the connection.
    fn exchange(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may have answered and closed before everything is written.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        let host = self.address;
        self.exchange(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n").as_bytes())
    }

    /// Begins a session with a token.
    fn open(&self, token: &str) -> Browser<'_> {
        let answer = self.get(&format!("/?token={token}"), "");
        assert_eq!((answer.status, answer.body.as_str()), (303, ""), "{answer:?}");
        let path = answer.header("location").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
        let cookie = answer.header("set-cookie").unwrap_or_else(|| panic!("{answer:?}"));
        assert!(cookie.ends_with(&format!("; Path={path}; HttpOnly; SameSite=Strict")), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Browser { console: self, path, cookie, form_token: OnceCell::new() }
    }

    /// Begins the session that decides.
    fn browser(&self) -> Browser<'_> {
        self.open(&self.tokens[0])
    }

    /// Waits for the end of the program.
    #[cfg(unix)]
    fn end(mut self) -> std::process::ExitStatus {
        let until = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the console did not end");
    }
}

/// Returns the text of the lists of calls and runs, and of all pages that they lead to, without the markup's escapes.
pub(crate) fn history(crib: &Crib) -> String {
    let console = Console::start(crib, &[]);
    let browser = console.browser();
    let mut paths = vec!["calls".to_owned(), "runs".to_owned(), "calls/export".to_owned()];
    let mut text = String::new();
    let mut at = 0;
    while at < paths.len() {
        let answer = browser.get(&paths[at]);
        assert!(answer.status == 200, "{}: {answer:?}", paths[at]);
        let unescaped = [("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
        let body = unescaped.iter().fold(answer.body, |body, (escaped, plain)| body.replace(escaped, plain));
        let links = body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let links = links.filter_map(|link| link.strip_prefix(browser.path.as_str()));
        for link in links.filter(|link| link.starts_with("calls/") || link.starts_with("runs/")) {
            if !paths.iter().any(|path| path == link) {
                paths.push(link.to_owned());
            }
        }
        text += &body;
        at += 1;
    }
    assert!(paths.len() > 3, "{paths:?}");
    text
}

impl Drop for Console {
    fn drop(&mut self) {
        // It has ended if the test has ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| line.to_lowercase().starts_with(&format!("{name}: "));
        self.head.lines().find(named).map(|line| &line[name.len() + 2..])
    }
}

impl Browser<'_> {
    fn get(&self, page: &str) -> Answer {
        self.console.get(&format!("{}{page}", self.path), &format!("cookie: {}\r\n", self.cookie))
    }

    /// Text of a page that is shown.
    fn page(&self, page: &str) -> String {
        let answer = self.get(page);
        assert_eq!(answer.status, 200, "{page}: {answer:?}");
        answer.body
    }

    /// Token of the forms of this session.
    fn form_token(&self) -> String {
        let read = || {
            let page = self.page("decisions");
            let (_, rest) = page.split_once("name=\"token\" value=\"").unwrap_or_else(|| panic!("no form: {page}"));
            rest.split('"').next().unwrap().to_owned()
        };
        self.form_token.get_or_init(read).clone()
    }

    /// Sends a form with its token, as a page of the console does.
    fn send(&self, page: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token();
        let origin = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", self.console.address);
        self.post(page, &[&[("token", token.as_str())], fields].concat(), &origin)
    }

    /// Sends a form with these fields and headers alone.
    fn post(&self, page: &str, fields: &[(&str, &str)], headers: &str) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.console.exchange(
            format!(
                "POST {}{page} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncookie: {}\r\n{headers}\
                 content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
                self.path,
                self.console.address,
                self.cookie,
                body.len()
            )
            .as_bytes(),
        )
    }
}

/// Main part of a page as plain text: a line for each block, and a bar after each cell of a table.
fn plain(page: &str) -> String {
    let main = page.split_once("<main").unwrap_or_else(|| panic!("{page}")).1.split("</main>").next().unwrap();
    let main = main.split_once('>').unwrap().1;
    let replaced = |text: &str, expression: &str, by: &str| {
        regex::Regex::new(expression).unwrap().replace_all(text, by).into_owned()
    };
    let text = replaced(main, r"(?s)<(svg|script|style)\b.*?</(svg|script|style)>", "");
    let text = replaced(&text, r"</t[dh]>", " | ");
    let text =
        replaced(&text, r"<br>|</(p|h\d|li|tr|dt|dd|caption|summary|option|label|legend|div|button|pre|a)>", "\n");
    let text = replaced(&text, r"<[^>]*>", "");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}
