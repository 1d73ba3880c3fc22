//! Messages over standard streams, one on each line. A request that cannot be read is refused under its identifier, so that
//! its client does not wait for an answer. Lines that request nothing are ignored. After the end of the input, the requests that
//! are not answered yet may be, as long as somebody reads.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::message::{MAX_MESSAGE, RefusedMessage, begins, parse, too_long};

/// Length of the start of a message that is too long, in which its identifier is found.
const MAX_START: usize = 4096;
/// Maximum number of messages that wait to be sent. Beyond it, nothing is read, so that a client that reads no answers fills no
/// memory.
const MAX_UNSENT: usize = 1024;
/// Time after the end of the input in which requests are answered. It is longer than a call may take by default.
const LAST_ANSWERS: Duration = Duration::from_secs(40);
/// Messages of one client.
pub(super) struct Wire<R: AsyncRead, W: AsyncWrite> {
    input: BufReader<R>,
    /// Line as far as it was read; the start of one that is too long.
    line: Vec<u8>,
    is_too_long: bool,
    /// `true` after the request that begins the conversation.
    has_begun: bool,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    traffic: watch::Sender<Traffic>,
    /// Refusal that is being sent. Nothing is read meanwhile.
    refusal: Option<BoxFuture<'static, io::Result<()>>>,
    /// Cancelled at the end of the input.
    closing: CancellationToken,
    /// End of the wait for answers after the end of the input.
    deadline: Option<Instant>,
}

/// Messages between a client and the service.
#[derive(Debug, Default)]
struct Traffic {
    /// Number of messages that wait to be sent.
    unsent: usize,
    /// Identifiers of the requests that have no answer yet.
    unanswered: HashSet<RequestId>,
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
            traffic: watch::Sender::default(),
            refusal: None,
            closing,
            deadline: None,
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
    fn message(&mut self) -> Result<Option<ClientJsonRpcMessage>, Box<RefusedMessage>> {
        let message = match self.is_too_long {
            true => Err(too_long(&self.line)),
            false => parse(&self.line),
        };
        self.line.clear();
        self.is_too_long = false;
        // The library ends the service for anything else that comes before the conversation begins.
        let message = message?.filter(|message| {
            self.has_begun = self.has_begun || begins(message);
            self.has_begun || matches!(message, ClientJsonRpcMessage::Request(_))
        });
        if let Some(message) = &message {
            self.register(message)?;
        }
        Ok(message)
    }

    /// Remembers a request until it is answered or cancelled.
    ///
    /// # Errors
    ///
    /// Its identifier is that of a running request, whose answer could not be told from its own.
    fn register(&self, message: &ClientJsonRpcMessage) -> Result<(), Box<RefusedMessage>> {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut is_new = true;
                self.traffic.send_modify(|traffic| is_new = traffic.unanswered.insert(request.id.clone()));
                let used = || ErrorData::invalid_request("the identifier is that of a running request", None);
                is_new.then_some(()).ok_or_else(|| RefusedMessage::new(used(), Some(request.id.clone())))
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.traffic.send_modify(|traffic| {
                        traffic.unanswered.remove(id);
                    });
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }

    /// Waits until all requests are answered, at most for a time after the end of the input.
    async fn wait_for_answers(&mut self) {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + LAST_ANSWERS);
        let mut traffic = self.traffic.subscribe();
        let answered = traffic.wait_for(|traffic| traffic.unanswered.is_empty());
        let _ = tokio::time::timeout_at(deadline, answered).await;
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (unsent, sending) = (Unsent::new(&self.traffic, answered(&item)), self.output.send(item));
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
            let has_room = self.traffic.subscribe().wait_for(|traffic| traffic.unsent < MAX_UNSENT).await.is_ok();
            if !has_room || self.read_line().await.is_none() {
                break;
            }
            match self.message() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let RefusedMessage { error, id } = *refusal;
                    self.refusal = Some(self.output.send(ServerJsonRpcMessage::error(error, id)).boxed());
                }
            }
        }
        self.closing.cancel();
        self.wait_for_answers().await;
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}

/// Message that waits to be sent, until it is dropped.
struct Unsent(watch::Sender<Traffic>);

impl Unsent {
    /// Counts a message, which answers the request with this identifier.
    fn new(all: &watch::Sender<Traffic>, answered: Option<&RequestId>) -> Self {
        all.send_modify(|traffic| {
            traffic.unsent += 1;
            if let Some(id) = answered {
                traffic.unanswered.remove(id);
            }
        });
        Self(all.clone())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.send_modify(|traffic| traffic.unsent -= 1);
    }
}

/// Returns the identifier of the request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerResult;
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Reads all of an input; returns the number of messages, and the refusals as text.
    async fn read(input: &[u8]) -> (usize, String) {
        let (write, mut written) = tokio::io::duplex(1 << 20);
        let mut wire = Wire::new(input, write, CancellationToken::new());
        wire.deadline = Some(Instant::now());
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
    async fn an_identifier_is_free_again_after_the_answer_or_a_cancellation() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let (messages, refused) = read(format!("{ping}\n{ping}\n").as_bytes()).await;
        assert!(
            messages == 1 && refused.contains("\"id\":1,") && refused.contains("of a running request"),
            "{refused}"
        );
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let begun = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let begun = begun.replace('\n', "");
        assert_eq!(read(format!("{begun}\n{cancelled}\n{ping}\n").as_bytes()).await, (3, String::new()));
        let input = format!("{ping}\n{ping}\n");
        let mut wire = Wire::new(input.as_bytes(), tokio::io::sink(), CancellationToken::new());
        for _ in 0..2 {
            assert!(wire.receive().await.is_some());
            wire.send(pong(1)).await.unwrap();
        }
        assert!(wire.receive().await.is_none());
    }

    #[tokio::test]
    async fn the_end_of_the_input_waits_until_all_requests_are_answered() {
        let ping = format!("{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let mut wire = Wire::new(ping.as_bytes(), tokio::io::sink(), CancellationToken::new());
        assert!(wire.receive().await.is_some());
        assert!(tokio::time::timeout(Duration::from_millis(50), wire.receive()).await.is_err());
        assert!(wire.closing.is_cancelled());
        wire.send(pong(1)).await.unwrap();
        assert!(wire.receive().await.is_none());
    }

    fn pong(id: i64) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))
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
