//! Framing of messages, by hand: lines, and HTTP/1.1 on connections that stay open.

use std::io::{self, BufRead, ErrorKind, Read};

/// Maximum size of a line, a head or a body in bytes.
const MAX_MESSAGE: u64 = 16 << 20;

/// Head of a request or a response over HTTP.
pub(crate) struct Head {
    /// First line.
    pub(crate) start: String,
    /// Identifier of the conversation.
    pub(crate) session: Option<String>,
    length: Option<u64>,
    is_chunked: bool,
}

/// Replaces `line` by the next line of a stream, without its end.
pub(crate) fn line(stream: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    stream.take(MAX_MESSAGE).read_until(b'\n', line)?;
    if line.pop() != Some(b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(())
}

/// Reads a head.
pub(crate) fn head(stream: &mut impl BufRead) -> io::Result<Head> {
    let mut text = Vec::new();
    line(stream, &mut text)?;
    let start = String::from_utf8_lossy(&text).into_owned();
    let mut head = Head { start, session: None, length: None, is_chunked: false };
    loop {
        line(stream, &mut text)?;
        let field = String::from_utf8_lossy(&text);
        let Some((name, value)) = field.split_once(':') else { return Ok(head) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "mcp-session-id" => head.session = Some(value.to_owned()),
            "content-length" => head.length = Some(value.parse().map_err(io::Error::other)?),
            "transfer-encoding" => head.is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
}

/// Replaces `body` by the body that follows a head. A body without a length is empty.
pub(crate) fn body(stream: &mut impl BufRead, head: &Head, body: &mut Vec<u8>) -> io::Result<()> {
    body.clear();
    if !head.is_chunked {
        return append(stream, head.length.unwrap_or(0), body);
    }
    let mut size = Vec::new();
    loop {
        line(stream, &mut size)?;
        let size_text = String::from_utf8_lossy(&size).into_owned();
        let length = u64::from_str_radix(size_text.trim(), 16).map_err(io::Error::other)?;
        append(stream, length, body)?;
        // The end of the chunk.
        line(stream, &mut size)?;
        if length == 0 {
            return Ok(());
        }
    }
}

/// Appends this many bytes of a stream.
fn append(stream: &mut impl Read, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    if length > MAX_MESSAGE - (bytes.len() as u64).min(MAX_MESSAGE) {
        return Err(io::Error::other(format!("a body of more than {MAX_MESSAGE} bytes")));
    }
    match stream.take(length).read_to_end(bytes)? as u64 == length {
        true => Ok(()),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}
