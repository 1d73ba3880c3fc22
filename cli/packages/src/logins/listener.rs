//! Listener for the one answer of a browser, on a loopback address. Everything else that connects gets a refusal.

use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Path of the answer.
const PATH: &str = "/callback";
/// Maximum time for the answer.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Maximum time of one connection.
const MAX_CONNECTION: Duration = Duration::from_secs(10);
/// Maximum bytes of a request's head.
const MAX_HEAD: usize = 16 << 10;
/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 200;

/// Listener for one answer.
pub(super) struct AnswerListener {
    listener: TcpListener,
    port: u16,
}

impl AnswerListener {
    /// Listens on a port of the loopback address; 0 is any.
    pub(super) async fn bind(port: u16) -> anyhow::Result<Self> {
        let failed = || format!("cannot listen on 127.0.0.1:{port} for the answer of the browser");
        let listener = TcpListener::bind(("127.0.0.1", port)).await.with_context(failed)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the address of the answer.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the query of the answer that is meant. Others are refused, and do not end the wait; a connection without a request
    /// delays no other.
    pub(super) async fn answer(self, is_meant: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let wait = async {
            let (mut open, mut connections) = (FuturesUnordered::new(), 0);
            loop {
                tokio::select! {
                    accepted = self.listener.accept(), if connections < MAX_CONNECTIONS => {
                        connections += 1;
                        open.push(self.served(accepted?.0, &is_meant));
                    }
                    Some(query) = open.next() => {
                        if let Some(query) = query {
                            return Ok(query);
                        }
                    }
                    else => bail!("{MAX_CONNECTIONS} connections brought no answer to the login"),
                }
            }
        };
        timeout(MAX_WAIT, wait)
            .await
            .map_err(|_| anyhow::anyhow!("no answer came within {} minutes", MAX_WAIT.as_secs() / 60))?
    }

    /// Answers one connection, and returns the query if it is the one that is meant.
    async fn served(&self, mut stream: TcpStream, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let query = timeout(MAX_CONNECTION, self.query(&mut stream)).await.ok().flatten();
        let query = query.filter(|query| is_meant(query));
        let (status, text) = match &query {
            Some(_) => ("200 OK", "The answer has arrived. Return to the terminal; this page can be closed."),
            None => ("400 Bad Request", "No login is waiting for this answer."),
        };
        let length = text.len();
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
             cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}"
        );
        // The browser may have left.
        let _ = timeout(MAX_CONNECTION, stream.write_all(response.as_bytes())).await;
        let _ = timeout(MAX_CONNECTION, stream.shutdown()).await;
        query
    }

    /// Reads the query of a request for the answer's path, which names this address as its host.
    async fn query(&self, stream: &mut TcpStream) -> Option<String> {
        let mut head = Vec::new();
        let mut buffer = [0; 2048];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
            head.extend_from_slice(&buffer[..count]);
            if head.len() > MAX_HEAD {
                return None;
            }
        }
        let head = String::from_utf8(head).ok()?;
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?, first.next()?);
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
        });
        let (path, query) = target.split_once('?')?;
        let is_ours = method == "GET" && path == PATH && host? == format!("127.0.0.1:{}", self.port);
        is_ours.then(|| query.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sent(port: u16, text: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_answer_that_is_meant_ends_the_wait() {
        let listener = AnswerListener::bind(0).await.unwrap();
        let port = listener.port;
        let waiting = tokio::spawn(listener.answer(|query| query == "state=right"));
        let host = format!("Host: 127.0.0.1:{port}");
        // They send nothing, and delay nobody.
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS / 2 {
            idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        for request in [
            format!("GET /callback?state=wrong HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("GET /other?state=right HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("POST /callback?state=right HTTP/1.1\r\n{host}\r\n\r\n"),
            "GET /callback?state=right HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            "GET /callback?state=right HTTP/1.1\r\n\r\n".to_owned(),
            "x\r\n\r\n".to_owned(),
        ] {
            assert!(sent(port, &request).await.starts_with("HTTP/1.1 400"), "{request}");
        }
        let answer = sent(port, &format!("GET /callback?state=right HTTP/1.1\r\n{host}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(waiting.await.unwrap().unwrap(), "state=right");
    }
}
