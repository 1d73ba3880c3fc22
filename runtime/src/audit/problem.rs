//! Problems of a log, as values and as messages.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::Severity;

use super::chain::Chain;

/// A problem of a log with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogProblem {
    /// [`Severity::Error`] if the log was changed; [`Severity::Warning`] for records that the chain does not cover, or
    /// if a writer was killed.
    pub severity: Severity,
    /// The file, or the folder if the problem concerns no single file.
    pub file: PathBuf,
    /// Line in the file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Kind of the problem.
    #[serde(flatten)]
    pub kind: LogProblemKind,
}

/// Kind of a problem. Numbers are the `seq` of records; ranges are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LogProblemKind {
    /// A record does not match its chain value.
    Changed {
        /// Number of the record.
        seq: u64,
    },
    /// Records are missing before this line.
    Removed {
        /// First missing record.
        first: u64,
        /// Last missing record.
        last: u64,
    },
    /// Records are missing at the end, after this line if there is one, according to the head.
    RemovedAtEnd {
        /// First missing record.
        first: u64,
        /// Last missing record.
        last: u64,
    },
    /// A record follows a later one, or occurs twice.
    Reordered {
        /// Number of the record.
        seq: u64,
        /// Number of the record that it follows.
        after: u64,
    },
    /// Incomplete lines, in addition to all records.
    Torn {
        /// Number of lines, from this one on.
        lines: u64,
    },
    /// Records without a chain value.
    Unchained {
        /// Number of lines, from this one on.
        lines: u64,
    },
    /// A record that matches its chain value, but not the head.
    Replaced {
        /// Number of the record.
        seq: u64,
    },
    /// The file `head` is missing.
    HeadMissing,
    /// The file `head` does not have its format.
    HeadUnreadable,
    /// An expected chain value does not occur in the log.
    NotedMissing {
        /// Expected chain value.
        chain: Chain,
    },
}

impl fmt::Display for LogProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { seq } => {
                write!(
                    f,
                    "record {seq} does not match its chain value: it or the end of the previous record was changed"
                )
            }
            Self::Removed { first, last } => {
                write!(f, "{} missing before this line: removed from the log", range(*first, *last))
            }
            Self::RemovedAtEnd { first, last } => {
                write!(f, "{} missing at the end, according to `head`: removed from the log", range(*first, *last))
            }
            Self::Reordered { seq, after } => {
                write!(f, "record {seq} follows record {after}: the line was moved or copied here")
            }
            Self::Torn { lines: 1 } => f.write_str("this line is not a complete record: a writer was killed"),
            Self::Torn { lines } => write!(f, "{lines} lines from here are not complete records: a writer was killed"),
            Self::Unchained { lines: 1 } => {
                f.write_str("this line has no chain value: changes to it cannot be detected")
            }
            Self::Unchained { lines } => {
                write!(f, "{lines} lines from here have no chain value: changes to them cannot be detected")
            }
            Self::Replaced { seq } => {
                write!(f, "record {seq} is not the one in `head`: the end of the log was rewritten")
            }
            Self::HeadMissing => f.write_str("is missing: removed records at the end of the log cannot be detected"),
            Self::HeadUnreadable => {
                f.write_str("has an unknown format: removed records at the end of the log cannot be detected")
            }
            Self::NotedMissing { chain } => write!(
                f,
                "no record has the expected chain value {chain}: the log was rewritten, or the record was moved away"
            ),
        }
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is") } else { format!("records {first} to {last} are") }
}
