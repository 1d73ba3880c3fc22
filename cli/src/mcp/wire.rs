//! Messages over standard streams, one on each line. A request that cannot be read is refused under its identifier, so that
//! its client does not wait for an answer. Lines that request nothing are ignored.

use std::borrow::Cow;
use std::io;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Maximum length of a message in bytes. A longer one is refused, and the connection goes on.
const MAX_MESSAGE: usize = 16 << 20;
/// Length of the start of a message that is too long, in which its identifier is found.
const MAX_START: usize = 4096;
/// Maximum number of messages that wait to be sent. Beyond it, nothing is read, so that a client that reads no answers fills no
/// memory.
const MAX_UNSENT: usize = 1024;
/// Mark that some programs write before the first character.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Messages of one client.
pub(super) struct Wire<R: AsyncRead, W: AsyncWrite> {
    input: BufReader<R>,
    /// Line as far as it was read; the start of one that is too long.
    line: Vec<u8>,
    is_too_long: bool,
    /// `true` after the request that begins the conversation.
    has_begun: bool,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    /// Number of messages that wait to be sent.
    unsent: watch::Sender<usize>,
    /// Refusal that is being sent. Nothing is read meanwhile.
    refusal: Option<BoxFuture<'static, io::Result<()>>>,
    /// Cancelled when the client has left.
    closing: CancellationToken,
}

/// Reason to refuse a message, with the identifier of the request if it has one.
#[derive(Debug, PartialEq)]
struct Refusal {
    error: ErrorData,
    id: Option<RequestId>,
}

impl Refusal {
    fn new(error: ErrorData, id: Option<RequestId>) -> Box<Self> {
        Box::new(Self { error, id })
    }
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, closing: CancellationToken) -> Self {
        Self {
            input: BufReader::new(read),
            line: Vec::new(),
            is_too_long: false,
            has_begun: false,
            output: AsyncRwTransport::new_server(tokio::io::empty(), write),
            unsent: watch::Sender::new(0),
            refusal: None,
            closing,
        }
    }

    /// Reads up to the end of a line; `None` at the end of the input. A dropped future loses nothing.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let available = self.input.fill_buf().await.ok().filter(|available| !available.is_empty())?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if self.is_too_long || self.line.len() + part.len() > MAX_MESSAGE {
                self.is_too_long = true;
                self.line.truncate(MAX_START);
                self.line.shrink_to(MAX_START);
            } else {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Some(());
            }
        }
    }

    /// Takes the message of the line that was read.
    fn message(&mut self) -> Result<Option<ClientJsonRpcMessage>, Box<Refusal>> {
        let message = match self.is_too_long {
            true => Err(too_long(&self.line)),
            false => parse(&self.line),
        };
        self.line.clear();
        self.is_too_long = false;
        // The library ends the service for anything else that comes before the conversation begins.
        Ok(message?.filter(|message| {
            self.has_begun = self.has_begun || begins(message);
            self.has_begun || matches!(message, ClientJsonRpcMessage::Request(_))
        }))
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (unsent, sending) = (Unsent::new(&self.unsent), self.output.send(item));
        async move {
            let _unsent = unsent;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                let sent = refusal.await;
                self.refusal = None;
                if sent.is_err() {
                    break;
                }
            }
            // Answers go first: requests that have arrived already could be read faster than they are answered.
            tokio::task::yield_now().await;
            let has_room = self.unsent.subscribe().wait_for(|unsent| *unsent < MAX_UNSENT).await.is_ok();
            if !has_room || self.read_line().await.is_none() {
                break;
            }
            match self.message() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let Refusal { error, id } = *refusal;
                    self.refusal = Some(self.output.send(ServerJsonRpcMessage::error(error, id)).boxed());
                }
            }
        }
        self.closing.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}

/// Message that waits to be sent, until it is dropped.
struct Unsent(watch::Sender<usize>);

impl Unsent {
    fn new(all: &watch::Sender<usize>) -> Self {
        all.send_modify(|unsent| *unsent += 1);
        Self(all.clone())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.send_modify(|unsent| *unsent -= 1);
    }
}

/// Returns `true` for a request after which the library accepts every message.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request.get_meta().protocol_version().is_some(),
    }
}

/// Reads a message; `None` if the line requests nothing.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<Refusal>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let outline = Outline::of(line);
    let is_json = matches!(error.classify(), Category::Data | Category::Io);
    match (is_json, outline.request()) {
        (true, None) if outline.has_method && !outline.has_id => Ok(None),
        (true, id) => Err(Refusal::new(ErrorData::invalid_request("invalid request", None), id)),
        (false, None) => Ok(None),
        (false, id) => {
            let message: Cow<'static, str> = format!("the request is not valid JSON: {error}").into();
            Err(Refusal::new(ErrorData::parse_error(message, None), id))
        }
    }
}

/// Describes in JSON why a message is refused, under its identifier if it has one.
pub(super) fn refusal(message: &[u8]) -> String {
    let (error, id) = match parse(message) {
        Err(refusal) => (refusal.error, refusal.id),
        // It is JSON only if it is a notification, of which the protocol allows none like this.
        Ok(_) if serde_json::from_slice::<IgnoredAny>(message).is_ok() => {
            (ErrorData::invalid_request("invalid request", None), None)
        }
        Ok(_) => (ErrorData::parse_error("the request is not valid JSON", None), None),
    };
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

/// Refuses a message that is too long, by its start.
fn too_long(start: &[u8]) -> Box<Refusal> {
    let message = format!("the message is longer than {} MiB", MAX_MESSAGE >> 20);
    Refusal::new(ErrorData::invalid_request(message, None), Outline::of(start).request())
}

/// Members of a message, which may be broken or incomplete.
#[derive(Debug, Default)]
struct Outline {
    has_method: bool,
    has_id: bool,
    /// Identifier; `None` if it is no identifier or given twice.
    id: Option<RequestId>,
}

impl Outline {
    fn of(text: &[u8]) -> Self {
        let (mut outline, mut depth, mut at) = (Self::default(), 0_usize, 0);
        let mut key: &[u8] = b"";
        while let Some(byte) = text.get(at) {
            let next = if *byte == b'"' { at + string_len(&text[at..]) } else { at + 1 };
            match byte {
                b'"' if depth == 1 => key = &text[at..next],
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b':' if depth == 1 && key == b"\"method\"" => outline.has_method = true,
                b':' if depth == 1 && key == b"\"id\"" => {
                    outline.id = if outline.has_id { None } else { identifier(&text[next..]) };
                    outline.has_id = true;
                }
                _ => {}
            }
            at = next;
        }
        outline
    }

    /// Returns the identifier of a request. An answer of the client to a request of the server has one too, but no method.
    fn request(&self) -> Option<RequestId> {
        self.id.clone().filter(|_| self.has_method)
    }
}

/// Returns the length of the string at the start of a text, with its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Reads the identifier at the start of a text that goes on after it.
fn identifier(text: &[u8]) -> Option<RequestId> {
    let text = text.trim_ascii_start();
    text.first().filter(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))?;
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<RequestId>();
    let id = values.next()?.ok()?;
    (values.byte_offset() < text.len()).then_some(id)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Reads all of an input; returns the number of messages, and the refusals as text.
    async fn read(input: &[u8]) -> (usize, String) {
        let (write, mut written) = tokio::io::duplex(1 << 20);
        let mut wire = Wire::new(input, write, CancellationToken::new());
        let mut messages = 0;
        while wire.receive().await.is_some() {
            messages += 1;
        }
        assert!(wire.closing.is_cancelled());
        wire.close().await.unwrap();
        drop(wire);
        let mut text = String::new();
        written.read_to_string(&mut text).await.unwrap();
        (messages, text)
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_read_is_refused_under_its_identifier() {
        for (line, id, code) in [
            (&br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"t":"\ud83d"}}"#[..], "7", "-32700"),
            (b"{\"method\":\"ping\",\"id\":\"a\",\"params\":{\"t\":\"\xff\"}}", "\"a\"", "-32700"),
            (br#"{"jsonrpc":"2.0","id":-8,"method":"x","params":{"n":1e999}}"#, "-8", "-32700"),
            (br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ec"#, "9", "-32700"),
            (br#"{"jsonrpc":"2.0","id":10,"method":7}"#, "10", "-32600"),
            (br#"{"jsonrpc":"1.0","id":11,"method":"ping"}"#, "11", "-32600"),
        ] {
            let (messages, refused) = read(&[line, b"\r\n"].concat()).await;
            let has = |part: String| refused.contains(&part);
            assert!(messages == 0 && has(format!("\"id\":{id},")) && has(format!("\"code\":{code}")), "{refused}");
            assert_eq!(refused.lines().count(), 1, "{refused}");
        }
        let deep = [br#"{"id":12,"method":"x","params":"#, "[".repeat(1000).as_bytes(), b"\n"].concat();
        assert!(read(&deep).await.1.contains("\"id\":12,"));
    }

    #[tokio::test]
    async fn a_line_that_requests_nothing_is_ignored_and_no_answer_names_a_wrong_request() {
        for line in [
            &b"\n \n\r\n"[..],
            b"\x1b[2J\n\xff\xfe\n",
            b"{\"id\":7,\"result\":{\"t\":\"\\ud83d\"}}\n",
            b"{\"method\":\"notifications/cancelled\",\"params\":7}\n",
            b"{\"params\":{\"id\":7,\"method\":\"x\"},\"t\":\"\\ud83d\"}\n",
            b"{\"id\":7,\"id\":8,\"method\":\"x\",\"t\":\"\\ud83d\"}\n",
            b"{\"method\":\"x\",\"id\":7\n",
        ] {
            assert_eq!(read(line).await, (0, String::new()), "{}", line.escape_ascii());
        }
        let (messages, refused) = read(b"[{\"id\":7,\"method\":\"ping\"}]\n{\"id\":7}\n").await;
        assert!(messages == 0 && refused.lines().count() == 2 && !refused.contains("\"id\""), "{refused}");
    }

    #[tokio::test]
    async fn nothing_but_requests_passes_before_the_conversation_begins() {
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let hello = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25",
            "capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        let hello = hello.replace('\n', "");
        let answer = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        let input = format!("{notification}\n{answer}\n{ping}\n{notification}\n{hello}\n{notification}\n{answer}\n");
        assert_eq!(read(input.as_bytes()).await, (4, String::new()), "ping, hello, notification and answer");
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_and_the_next_is_read() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":4,"method":"x","params":{{"t":"{}"}}}}"#, "x".repeat(MAX_MESSAGE));
        let input = format!("{long}\n{}\n", r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
        let (messages, refused) = read(input.as_bytes()).await;
        assert!(messages == 1 && refused.contains("\"id\":4,") && refused.contains("longer than 16 MiB"), "{refused}");
    }

    #[tokio::test]
    async fn nothing_is_read_while_too_many_messages_wait_to_be_sent() {
        let ping = format!("{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let mut wire = Wire::new(ping.as_bytes(), tokio::io::sink(), CancellationToken::new());
        let error = || ServerJsonRpcMessage::error(ErrorData::invalid_request("x", None), None);
        let mut unsent: Vec<BoxFuture<'static, _>> = (0..MAX_UNSENT).map(|_| wire.send(error()).boxed()).collect();
        assert!(wire.receive().now_or_never().is_none());
        unsent.pop().unwrap().await.unwrap();
        assert!(wire.receive().await.is_some());
    }
}
