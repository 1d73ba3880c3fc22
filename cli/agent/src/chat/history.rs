//! Lines that were typed in earlier chats, kept in an owner-only file with the masks of kept runs.

use std::path::Path;
use std::time::Duration;

use toolcrib::owner_only::{OwnerOnlyFile, SharedAccess};
use toolcrib_base::render;

/// Maximum number of lines.
const MAX_LINES: usize = 500;
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum wait for another chat that writes the file.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// File name in the directory of kept runs.
const NAME: &str = "chat-history";

/// File of the lines, one JSON string a line.
#[derive(Debug)]
pub(super) struct History(OwnerOnlyFile);

impl History {
    /// Names the file in a folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(OwnerOnlyFile::new(folder.join(NAME), MAX_BYTES, SharedAccess::None))
    }

    /// Reads the lines, oldest first. A file that cannot be read is empty: nothing depends on it.
    pub(super) fn read(&self) -> Vec<String> {
        let bytes = self.0.read().unwrap_or_default().unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        lines.collect()
    }

    /// Replaces the lines by the last ones of `lines`.
    pub(super) fn write(&self, lines: &[String]) {
        let lines = &lines[lines.len().saturating_sub(MAX_LINES)..];
        let (mut text, mut kept) = (Vec::new(), 0_u64);
        for line in lines.iter().rev() {
            let line = format!("{}\n", serde_json::Value::from(line.as_str()));
            kept += line.len() as u64;
            if kept > MAX_BYTES {
                break;
            }
            text.push(line);
        }
        text.reverse();
        let text = text.concat();
        let written = self.0.lock(MAX_WAIT).and_then(|lock| self.0.replace(&lock, text.as_bytes()));
        if let Err(error) = written {
            render::warning(&format!("cannot save the input history in `{}`: {error}", self.0.path().display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stay_within_their_limits() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::in_folder(&folder.path().join("runs"));
        assert!(history.read().is_empty());
        let lines: Vec<String> = (0..=MAX_LINES).map(|number| format!("line\n{number}")).collect();
        history.write(&lines);
        assert_eq!(history.read(), lines[1..]);
        let long: Vec<String> = (0..4).map(|number| format!("{number}{}", "x".repeat(400_000))).collect();
        history.write(&long);
        assert_eq!(history.read(), long[2..], "the oldest lines make room");
    }
}
