//! Unified diff of all changed files, of bounded size. Knows no files on disk.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::TextDiff;

/// Maximum size of the diff, in bytes: the whole answer is shown to the model.
const MAX_BYTES: usize = 32 * 1024;
/// Time after which the diff of a file may be longer than the shortest one.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Maximum lines of a file, before and after together: its diff takes memory for each.
const MAX_LINES: usize = 200_000;
/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// Diff of the changes that a call would make.
#[derive(Serialize)]
pub(crate) struct Preview {
    diff: String,
    /// `true` if the diff is cut, at a line.
    diff_truncated: bool,
    /// Changed files that have too many lines for a diff.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diff_left_out: Vec<String>,
    #[serde(skip)]
    deadline: Instant,
}

impl Default for Preview {
    fn default() -> Self {
        Self {
            diff: String::new(),
            diff_truncated: false,
            diff_left_out: Vec::new(),
            deadline: Instant::now() + MAX_TIME,
        }
    }
}

impl Preview {
    /// Adds the change of a file, as far as it fits.
    pub(crate) fn add(&mut self, path: &str, before: &str, after: &str) {
        if self.diff_truncated {
            return;
        }
        if before.lines().count() + after.lines().count() > MAX_LINES {
            self.diff_left_out.push(path.to_owned());
            return;
        }
        let diff = TextDiff::configure().deadline(self.deadline).diff_lines(before, after);
        let unified = diff.unified_diff().context_radius(CONTEXT).header(path, path).to_string();
        let room = MAX_BYTES - self.diff.len();
        if unified.len() <= room {
            self.diff.push_str(&unified);
            return;
        }
        self.diff_truncated = true;
        let end = unified.as_bytes()[..room].iter().rposition(|byte| *byte == b'\n');
        self.diff.push_str(&unified[..end.map_or(0, |at| at + 1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diff_has_every_file_and_is_cut_at_a_line() {
        let mut preview = Preview::default();
        preview.add("a", "x\n", "y\n");
        preview.add("b/c", "1\r\n2", "1\r\n3");
        let expected = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n--- b/c\n+++ b/c\n@@ -1,2 +1,2 @@\n 1\r\n-2\n\\ No newline at end of file\n+3\n\\ No newline at end of file\n";
        assert_eq!((preview.diff.as_str(), preview.diff_truncated), (expected, false));
        preview.add("d", &"0123456789\n".repeat(10_000), &"abcdefghij\n".repeat(10_000));
        assert!(preview.diff_truncated && preview.diff.len() <= MAX_BYTES && preview.diff.ends_with("-0123456789\n"));
        let length = preview.diff.len();
        preview.add("e", "x\n", "y\n");
        assert_eq!(preview.diff.len(), length);
    }
}
