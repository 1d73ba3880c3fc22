//! Counts of the files that a call leaves out, by reason.

use crate::walk::Entry;

/// Reason why a file is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The file is larger than `max_file_bytes`.
    TooLarge,
    /// The file is not UTF-8, or has a NUL.
    Binary,
    /// The file cannot be read.
    Unreadable,
}

impl Reason {
    /// Describes the reason for the only file of a call; `limit` is `max_file_bytes`.
    pub fn of_one(self, limit: u64) -> String {
        match self {
            Reason::TooLarge => format!("the file is larger than `max_file_bytes` ({limit})"),
            Reason::Binary => "the file is not UTF-8 text".to_owned(),
            Reason::Unreadable => "the file cannot be read".to_owned(),
        }
    }
}

/// Numbers of files and folders that were left out.
#[derive(Default)]
pub struct LeftOut {
    too_large: usize,
    binary: usize,
    unreadable: usize,
    not_included: usize,
    excluded: usize,
    links: usize,
    too_deep: usize,
    /// Rest that an incomplete search did not reach.
    stopped: Option<String>,
}

impl LeftOut {
    /// Counts an entry that is not a file to read.
    pub fn count(&mut self, entry: &Entry) {
        *match entry {
            Entry::File(_) => return,
            Entry::NotIncluded => &mut self.not_included,
            Entry::Excluded => &mut self.excluded,
            Entry::Unreadable => &mut self.unreadable,
            Entry::Link => &mut self.links,
            Entry::TooDeep => &mut self.too_deep,
        } += 1;
    }

    /// Counts a file that is skipped.
    pub fn skip(&mut self, reason: Reason) {
        *match reason {
            Reason::TooLarge => &mut self.too_large,
            Reason::Binary => &mut self.binary,
            Reason::Unreadable => &mut self.unreadable,
        } += 1;
    }

    /// Notes that the call stopped, with a description of the rest that it did not reach.
    pub fn stop(&mut self, rest: String) {
        self.stopped = Some(rest);
    }

    /// Returns `true` if the call stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Number of files that were skipped.
    pub fn files(&self) -> usize {
        self.too_large + self.binary + self.unreadable
    }

    /// Describes everything that was left out, one line per reason; `read` is the number of files that were read, and `limit`
    /// the value of `max_file_bytes`.
    pub fn reasons(self, read: usize, limit: u64) -> Vec<String> {
        let counted = [
            (self.too_large, format!("larger than `max_file_bytes` ({limit})")),
            (self.binary, "not UTF-8 text".to_owned()),
            (self.unreadable, "cannot be read".to_owned()),
            (self.links, "symbolic links, which are not followed".to_owned()),
            (self.too_deep, "folders that are too deep".to_owned()),
        ];
        let mut reasons: Vec<String> =
            counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count}: {why}")).collect();
        let is_empty = reasons.is_empty();
        if self.excluded > 0 {
            reasons.push(format!("{}: match `exclude`, each folder with everything in it", self.excluded));
        }
        if read == 0 && self.not_included > 0 {
            reasons.push(format!("{}: match no glob of `include`, so that no file was searched", self.not_included));
        } else if read == 0 && is_empty {
            reasons.push("no file was searched: the folder is empty, or `exclude` leaves none".to_owned());
        }
        reasons.extend(self.stopped);
        reasons
    }
}
