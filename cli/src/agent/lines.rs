//! Splits a byte stream into lines for the event parser, in linear time whatever the chunk sizes.

use std::mem;

use futures::{Stream, TryStreamExt, stream};

use super::request_error::RequestError;

/// Returns the lines of a stream with their line ends. An unterminated last line is dropped.
pub(crate) fn lines(
    bytes: impl Stream<Item = Result<Vec<u8>, RequestError>>,
) -> impl Stream<Item = Result<String, RequestError>> {
    let mut open = Vec::new();
    let whole = move |chunk: Vec<u8>| {
        let mut lines = Vec::new();
        for piece in chunk.split_inclusive(is_end) {
            open.extend_from_slice(piece);
            if piece.last().is_some_and(is_end) {
                lines.push(line(mem::take(&mut open)));
            }
        }
        stream::iter(lines)
    };
    bytes.map_ok(whole).try_flatten()
}

fn is_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Decodes a line. Event identifiers become comments, since the parser would copy them into every later event.
fn line(bytes: Vec<u8>) -> Result<String, RequestError> {
    let mut line = String::from_utf8(bytes).map_err(|_| RequestError::transient("the stream is not UTF-8 text"))?;
    if line.starts_with("id") {
        line.replace_range(..line.len() - 1, ":");
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;

    fn cut(chunks: &[&str]) -> Vec<String> {
        let chunks = chunks.iter().map(|chunk| Ok(chunk.as_bytes().to_vec())).collect::<Vec<_>>();
        let lines = lines(stream::iter(chunks)).map(|line| line.unwrap_or_else(|fault| format!("{fault:?}")));
        lines.collect().now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let wanted = ["data: ž\r", "\n", "\n", ":\n", "x\n"];
        assert_eq!(cut(&["data: ž\r\n\nid: 7\nx\n"]), wanted);
        assert_eq!(cut(&["da", "ta: ž", "\r", "\n\ni", "d: 7", "\n", "x\n", "dropped"]), wanted);
    }
}
