//! Cuts a stream of bytes into lines before it is read as events, one line at a time: whatever the sizes in which a server
//! sends it, no byte is looked at more than a few times.

use std::mem;

use futures::{Stream, TryStreamExt, stream};

use super::request_error::RequestError;

/// The lines of a stream, each with the character that ends it. What follows the last of these is dropped.
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

/// One line as text. An identifier of an event, which would be kept and copied with every later one, becomes a comment.
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
