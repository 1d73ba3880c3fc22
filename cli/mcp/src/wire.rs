//! Messages over standard streams, one on each line. A request that cannot be read is refused under its identifier, so that
//! its client does not wait for an answer. Lines that request nothing are ignored. After the end of the input, the requests that
//! have no answer yet get theirs.

use std::io;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::message::{MAX_MESSAGE, RefusedMessage, begins, parse, too_long};
use super::traffic::Traffic;

/// Length that is searched in a long message for its identifier.
const MAX_START: usize = 4096;
/// Maximum time after the end of the input in which requests are answered. It is longer than a call may take by default. The
/// library adds 5 seconds.
const MAX_WAIT: Duration = Duration::from_secs(35);

/// Messages of one client.
pub(super) struct Wire<R: AsyncRead, W: AsyncWrite> {
    input: BufReader<R>,
    /// Line as far as it was read; the start of one that is too long.
    line: Vec<u8>,
    is_too_long: bool,
    /// `true` after the request that begins the conversation.
    has_begun: bool,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    traffic: Traffic,
    /// Refusal that is being sent. Nothing is read meanwhile.
    refusal: Option<JoinHandle<io::Result<()>>>,
    /// Cancelled at the end of the input.
    closing: CancellationToken,
    max_wait: Duration,
    /// End of the wait for answers; `None` before the input ends.
    deadline: Option<Instant>,
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
            traffic: Traffic::default(),
            refusal: None,
            closing,
            max_wait: MAX_WAIT,
            deadline: None,
        }
    }

    /// Reads up to the end of a line, which the last one may lack; `None` when the input ends. A dropped future loses
    /// nothing.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let available = self.input.fill_buf().await.unwrap_or_default();
            if available.is_empty() {
                return (!self.line.is_empty() || self.is_too_long).then_some(());
            }
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
            self.traffic.receive(message)?;
        }
        Ok(message)
    }

    /// Reads the next message; `None` at the end of the input, or if nothing can be sent any more. A dropped future loses nothing.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                // A failure is one of the traffic.
                let _ = refusal.await;
                self.refusal = None;
            }
            // Answers go first: requests that have arrived already could be read faster than they are answered.
            tokio::task::yield_now().await;
            if !self.traffic.has_room().await {
                return None;
            }
            self.read_line().await?;
            match self.message() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let RefusedMessage { error, id } = *refusal;
                    let sending = self.output.send(ServerJsonRpcMessage::error(error, id));
                    // As a task: while half of it is written, no other message is sent.
                    self.refusal = Some(tokio::spawn(self.traffic.track(sending)));
                }
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.traffic.answer(&item);
        self.traffic.track(self.output.send(item))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let deadline = match self.deadline {
            Some(deadline) => deadline,
            None => {
                if let Some(message) = self.next().await {
                    return Some(message);
                }
                self.closing.cancel();
                *self.deadline.insert(Instant::now() + self.max_wait)
            }
        };
        let _ = tokio::time::timeout_at(deadline, self.traffic.settled()).await;
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use rmcp::model::{ErrorData, RequestId, ServerResult};
    use tokio::io::{AsyncReadExt, ReadBuf};

    use super::super::traffic::MAX_UNSENT;

    use super::*;

    /// Reads an input to its end; returns the number of messages, and the refusals as text.
    async fn read(input: &[u8]) -> (usize, String) {
        let (write, mut written) = tokio::io::duplex(1 << 20);
        let mut wire = Wire::new(input, write, CancellationToken::new());
        wire.max_wait = Duration::ZERO;
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
    async fn the_last_line_needs_no_end() {
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await, (1, String::new()));
        let (messages, refused) = read(br#"{"jsonrpc":"2.0","id":1,"method":"pi"#).await;
        assert!(messages == 0 && refused.contains("\"id\":1,") && refused.contains("-32700"), "{refused}");
    }

    #[tokio::test]
    async fn a_request_with_the_identifier_of_a_running_one_is_refused() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let (messages, refused) = read(format!("{ping}\n{ping}\n").as_bytes()).await;
        assert!(
            messages == 1 && refused.contains("\"id\":1,") && refused.contains("a running request has"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn the_end_of_the_input_waits_until_all_requests_are_answered_and_nothing_more_is_read() {
        let ping = |id: u64| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        // The input goes on after its end, as a terminal's input does.
        let (first, second) = (ping(1), ping(2));
        let all = [first.as_bytes(), b"", second.as_bytes()];
        let input = pieces(&all);
        let mut wire = Wire::new(input, tokio::io::sink(), CancellationToken::new());
        assert!(wire.receive().await.is_some());
        for _ in 0..2 {
            assert!(tokio::time::timeout(Duration::from_millis(50), wire.receive()).await.is_err());
        }
        assert!(wire.closing.is_cancelled());
        wire.send(pong(1)).await.unwrap();
        assert!(wire.receive().await.is_none());
    }

    #[tokio::test]
    async fn the_end_of_the_input_waits_until_the_last_answer_is_written() {
        let ping = format!("{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let (write, mut written) = tokio::io::duplex(8);
        let mut wire = Wire::new(ping.as_bytes(), write, CancellationToken::new());
        assert!(wire.receive().await.is_some());
        let sending = tokio::spawn(wire.send(pong(1)));
        assert!(tokio::time::timeout(Duration::from_millis(50), wire.receive()).await.is_err());
        BufReader::new(&mut written).read_until(b'\n', &mut Vec::new()).await.unwrap();
        sending.await.unwrap().unwrap();
        assert!(wire.receive().await.is_none());
    }

    #[tokio::test]
    async fn an_output_that_is_closed_ends_the_wait() {
        let ping = format!("{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let (write, written) = tokio::io::duplex(8);
        drop(written);
        let mut wire = Wire::new(ping.as_bytes(), write, CancellationToken::new());
        assert!(wire.receive().await.is_some());
        let error = ServerJsonRpcMessage::error(ErrorData::invalid_request("x", None), None);
        wire.send(error).await.unwrap_err();
        assert!(wire.receive().await.is_none(), "the request has no answer");
    }

    /// Returns an input of these pieces; an empty piece is an end.
    fn pieces<'a>(pieces: &'a [&'a [u8]]) -> impl AsyncRead + Unpin + 'a {
        struct Pieces<'a>(&'a [&'a [u8]]);
        impl AsyncRead for Pieces<'_> {
            fn poll_read(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let Some((piece, rest)) = self.0.split_first() else { return Poll::Pending };
                buffer.put_slice(piece);
                self.0 = rest;
                Poll::Ready(Ok(()))
            }
        }
        Pieces(pieces)
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
