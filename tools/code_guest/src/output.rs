//! Printed text: keeps its start up to a limit and counts the rest, so that a program that prints too much neither fails nor
//! fills the memory.

/// Text that a program printed.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    dropped: u64,
    limit: usize,
}

impl Output {
    /// Creates an empty text of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { text: String::new(), dropped: 0, limit }
    }

    /// Takes the text and the number of dropped bytes.
    pub fn take(&mut self) -> (String, u64) {
        (std::mem::take(&mut self.text), std::mem::take(&mut self.dropped))
    }

    /// Appends text. Nothing follows text that was dropped: the result is the start of the printed text.
    pub fn write(&mut self, text: &str) {
        let room = if self.dropped > 0 { 0 } else { self.limit - self.text.len() };
        let kept = text.floor_char_boundary(room);
        self.text.push_str(&text[..kept]);
        self.dropped += (text.len() - kept) as u64;
    }

    /// Counts bytes of a text that was never made.
    pub fn drop_bytes(&mut self, count: usize) {
        self.dropped += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::Output;

    #[test]
    fn the_start_is_kept() {
        let mut output = Output::new(5);
        for part in ["ab", "c€", "d"] {
            output.write(part);
        }
        assert_eq!(output.take(), ("abc".to_owned(), 4));
    }
}
