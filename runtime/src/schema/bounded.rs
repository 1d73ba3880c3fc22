//! Text of a stranger's schema, within a length.

use std::io;

use serde_json::Value;

/// Text that refuses to grow beyond a length.
struct Bounded {
    text: Vec<u8>,
    max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.max {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the JSON text of a value; `None` if it has more than `max` bytes. No more than these are written.
pub(crate) fn text_within(value: &Value, max: usize) -> Option<String> {
    let mut bounded = Bounded { text: Vec::new(), max };
    serde_json::to_writer(&mut bounded, value).ok()?;
    String::from_utf8(bounded.text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_has_at_most_so_many_bytes() {
        let value = json!({"a": ["b", 1]});
        assert_eq!(text_within(&value, 13).as_deref(), Some(r#"{"a":["b",1]}"#));
        assert_eq!(text_within(&value, 12), None);
    }
}
