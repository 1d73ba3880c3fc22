//! Events of a `text/event-stream`, as the HTML standard reads them, in linear time whatever the chunk sizes. Nothing
//! here is asked again at an identifier or after a time, so those fields are skipped.

use std::{mem, str};

use futures::{Stream, TryStreamExt, stream};

/// Name of an event without a name.
pub const UNNAMED: &str = "message";
/// Mark that may stand at the beginning.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An event with its data.
#[derive(Debug, PartialEq, Eq)]
pub struct SentEvent {
    /// Name of the event.
    pub name: String,
    /// Data of the event.
    pub data: String,
}

/// Reason why a stream ends early.
#[derive(Debug, PartialEq, Eq)]
pub enum EventError<E> {
    /// A line is not UTF-8.
    NotText,
    /// The bytes end with this error.
    Transport(E),
}

impl<E> EventError<E> {
    /// Turns both into the error of the bytes.
    pub fn or(self, not_text: impl FnOnce(&'static str) -> E) -> E {
        match self {
            Self::NotText => not_text("the stream is not UTF-8 text"),
            Self::Transport(error) => error,
        }
    }
}

/// Returns the events in a byte stream. What follows the last empty line is dropped.
pub fn events<B: AsRef<[u8]>, E>(
    bytes: impl Stream<Item = Result<B, E>>,
) -> impl Stream<Item = Result<SentEvent, EventError<E>>> {
    let mut parser = Parser::default();
    let read = move |chunk: B| stream::iter(parser.read::<E>(chunk.as_ref()));
    bytes.map_err(EventError::Transport).map_ok(read).try_flatten()
}

#[derive(Default)]
struct Parser {
    /// Bytes of a line without its end.
    line: Vec<u8>,
    /// `true` directly after a carriage return, which a line feed may follow.
    is_after_return: bool,
    /// `true` after the first line.
    is_begun: bool,
    name: String,
    /// Each line of data with a line feed.
    data: String,
}

impl Parser {
    fn read<E>(&mut self, chunk: &[u8]) -> Vec<Result<SentEvent, EventError<E>>> {
        let mut events = Vec::new();
        for piece in chunk.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_after_return = mem::take(&mut self.is_after_return);
            match piece {
                b"\n" if is_after_return => {}
                [text @ .., end @ (b'\n' | b'\r')] => {
                    self.line.extend_from_slice(text);
                    self.is_after_return = *end == b'\r';
                    events.extend(self.end_line());
                }
                text => self.line.extend_from_slice(text),
            }
        }
        events
    }

    fn end_line<E>(&mut self) -> Option<Result<SentEvent, EventError<E>>> {
        let line = mem::take(&mut self.line);
        let Ok(mut line) = str::from_utf8(&line) else { return Some(Err(EventError::NotText)) };
        if !mem::replace(&mut self.is_begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event().map(Ok);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // A comment, or a field without a use here.
            _ => {}
        }
        None
    }

    /// Ends an event; `None` if it has no data.
    fn end_event(&mut self) -> Option<SentEvent> {
        let (name, mut data) = (mem::take(&mut self.name), mem::take(&mut self.data));
        data.pop()?;
        Some(SentEvent { name: if name.is_empty() { UNNAMED.to_owned() } else { name }, data })
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;

    /// Events of a stream in these chunks, each as `NAME=DATA`, and an error as its kind.
    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let chunks = chunks.iter().map(|chunk| Ok::<_, ()>(*chunk)).collect::<Vec<_>>();
        let shown = |event: Result<SentEvent, _>| match event {
            Ok(event) => format!("{}={}", event.name, event.data),
            Err(error) => format!("{error:?}"),
        };
        events(stream::iter(chunks)).map(shown).collect().now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        for (text, wanted) in [
            ("data: a\n\n", &["message=a"][..]),
            ("data:a\ndata: b\ndata\n\ndata:  c\n\n", &["message=a\nb\n", "message= c"]),
            ("data\n\n", &["message="]),
            ("event: x\ndata: a\n\ndata: b\n\n", &["x=a", "message=b"]),
            ("event: x\nevent: y\ndata: a\n\n", &["y=a"]),
            ("event: x\n\ndata: a\n\n", &["message=a"]),
            ("event\ndata: a:b\n\n", &["message=a:b"]),
            (": comment\n\n:\nid: 7\nretry: 1\nother: z\nDATA: no\ndata : no\ndata: a\n\n", &["message=a"]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["message=a"]),
            (
                "data: a\r\n\r\ndata: b\r\rdata: c\n\r\ndata: d\r\n\n",
                &["message=a", "message=b", "message=c", "message=d"],
            ),
            ("\n\n\r\n\rdata: \u{17e}\n\n", &["message=\u{17e}"]),
            ("data: a\n\ndata: dropped\n", &["message=a"]),
            ("data: a\n\ndata: b\n\ndropped", &["message=a", "message=b"]),
            ("", &[]),
        ] {
            assert_eq!(read(&[text.as_bytes()]), wanted, "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes), wanted, "{text:?} in bytes");
        }
    }

    #[test]
    fn events_before_a_fault_are_read() {
        assert_eq!(read(&[b"data: a\n\ndata: \xff\n\n"]), ["message=a", "NotText"]);
        let cut = stream::iter([Ok(&b"data: a\n\n"[..]), Err("cut")]);
        let found: Vec<_> = events(cut).collect().now_or_never().expect("nothing to wait for");
        assert_eq!(found[1], Err(EventError::Transport("cut")));
        assert_eq!(EventError::NotText.or(str::to_owned), "the stream is not UTF-8 text");
    }
}
