//! Differences of two texts, line by line.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

/// Time for a comparison; after it, the comparison is coarser.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Lines around a difference.
const CONTEXT: usize = 3;

/// Formats the differences of two texts, with lines around them; empty if there are none.
pub fn unified(before: &str, after: &str) -> String {
    // A carriage return alone ends no line.
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let diff = TextDiff::configure().deadline(Instant::now() + MAX_TIME).diff_slices(&before, &after);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        text += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            text += &format!("{sign}{}", change.value());
            if !change.value().ends_with('\n') {
                text += "\n\\ No newline at end of file\n";
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_their_lines_and_a_missing_end() {
        assert_eq!(unified("a\nb\nc\n", "a\nB\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(unified("", "x"), "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n");
        assert_eq!(unified("same\n", "same\n"), "");
        assert_eq!(unified("a\rb\n", "a\rc\n"), "@@ -1 +1 @@\n-a\rb\n+a\rc\n");
    }
}
