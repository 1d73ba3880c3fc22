//! Count of the matches that a result has no room for.

use std::time::{Duration, Instant};

use file_selection::counted;

/// Time for counting after the result is full.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Matches after those in the result.
pub(crate) struct Rest {
    /// Limit that the result reached.
    limit: String,
    matches: usize,
    files: usize,
    /// `true` if not all files were counted.
    is_partial: bool,
    deadline: Instant,
}

impl Rest {
    pub(crate) fn new(limit: String) -> Self {
        Self { limit, matches: 0, files: 0, is_partial: false, deadline: Instant::now() + MAX_TIME }
    }

    /// Adds the matches of a file, and returns `true` if there is time for another one.
    pub(crate) fn add(&mut self, matches: usize) -> bool {
        self.matches += matches;
        self.files += usize::from(matches > 0);
        Instant::now() < self.deadline
    }

    /// Notes that files are left.
    pub(crate) fn end_early(&mut self) {
        self.is_partial = true;
    }

    pub(crate) fn describe(&self) -> String {
        let Self { limit, matches, files, is_partial, .. } = self;
        let least = if *is_partial { "at least " } else { "" };
        format!("{least}{} in {}: {limit}", counted(*matches, "more matching line"), counted(*files, "file"))
    }
}
