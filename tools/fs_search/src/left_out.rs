//! Files that a search left out, by reason.

use crate::walk::Entry;

/// Reason why a file is skipped.
#[derive(Clone, Copy)]
pub(crate) enum Reason {
    TooLarge,
    Binary,
    Unreadable,
}

impl Reason {
    /// Describes the reason for the only file of a search.
    pub(crate) fn of_one(self, limit: u64) -> String {
        match self {
            Reason::TooLarge => format!("the file is larger than `max_file_bytes` ({limit})"),
            Reason::Binary => "the file is not UTF-8 text".to_owned(),
            Reason::Unreadable => "the file cannot be read".to_owned(),
        }
    }
}

/// Numbers of what was left out.
#[derive(Default)]
pub(crate) struct LeftOut {
    too_large: usize,
    binary: usize,
    unreadable: usize,
    not_included: usize,
    links: usize,
    too_deep: usize,
    /// Rest that an incomplete search did not reach.
    stopped: Option<String>,
}

impl LeftOut {
    /// Counts an entry that is not a file to search.
    pub(crate) fn count(&mut self, entry: &Entry) {
        *match entry {
            Entry::File(_) => return,
            Entry::NotIncluded => &mut self.not_included,
            Entry::Unreadable => &mut self.unreadable,
            Entry::Link => &mut self.links,
            Entry::TooDeep => &mut self.too_deep,
        } += 1;
    }

    /// Counts a file that is skipped.
    pub(crate) fn skip(&mut self, reason: Reason) {
        *match reason {
            Reason::TooLarge => &mut self.too_large,
            Reason::Binary => &mut self.binary,
            Reason::Unreadable => &mut self.unreadable,
        } += 1;
    }

    /// Ends the search before its end.
    pub(crate) fn stop(&mut self, rest: String) {
        self.stopped = Some(rest);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Number of files that were skipped.
    pub(crate) fn files(&self) -> usize {
        self.too_large + self.binary + self.unreadable
    }

    /// Describes everything that was left out.
    pub(crate) fn reasons(self, searched: usize, limit: u64) -> Vec<String> {
        let counted = [
            (self.too_large, format!("larger than `max_file_bytes` ({limit})")),
            (self.binary, "not UTF-8 text".to_owned()),
            (self.unreadable, "cannot be read".to_owned()),
            (self.links, "symbolic links, which are not followed".to_owned()),
            (self.too_deep, "folders that are too deep".to_owned()),
        ];
        let mut reasons: Vec<String> =
            counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count}: {why}")).collect();
        if searched == 0 && self.not_included > 0 {
            reasons.push(format!("{}: match no glob of `include`, so that no file was searched", self.not_included));
        }
        if searched == 0 && reasons.is_empty() {
            reasons.push("no file was searched: the folder is empty, or `exclude` leaves none".to_owned());
        }
        reasons.extend(self.stopped);
        reasons
    }
}
