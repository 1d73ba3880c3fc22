//! What can be wrong with a log, as values and in words.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::chain::Chain;

/// Something that was found in a log, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogProblem {
    /// Whether the log can still be trusted.
    pub severity: Severity,
    /// The file, or the folder where no file is meant.
    pub file: PathBuf,
    /// The line in it, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is there.
    #[serde(flatten)]
    pub found: LogProblemKind,
}

/// How grave a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The log is not what was written.
    Error,
    /// Something is there that the chain says nothing about, or a writer was killed.
    Warning,
}

/// What was found. Numbers are those of records, `seq`, from first to last and with both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LogProblemKind {
    /// A record and its chain do not fit together.
    Changed {
        /// The record.
        seq: u64,
    },
    /// LogRecords are missing before this line.
    Removed {
        /// The first that is missing.
        first: u64,
        /// The last that is missing.
        last: u64,
    },
    /// LogRecords are missing at the end, after this line if there is one: the head knows of them.
    RemovedAtEnd {
        /// The first that is missing.
        first: u64,
        /// The last that is missing.
        last: u64,
    },
    /// A record stands after one that came later, or stands there twice.
    Reordered {
        /// The record.
        seq: u64,
        /// The record that it should stand before.
        after: u64,
    },
    /// Lines that are no whole record; no record is missing in their place.
    Torn {
        /// How many lines, from this one on.
        lines: u64,
    },
    /// LogRecords without a chain.
    Unchained {
        /// How many lines, from this one on.
        lines: u64,
    },
    /// A record that fits its chain, but is not the one that the head names.
    Replaced {
        /// The record.
        seq: u64,
    },
    /// There is no head beside the files.
    HeadMissing,
    /// The head is not as a writer leaves it.
    HeadUnreadable,
    /// A chain value that was noted earlier is nowhere in the log.
    NotedMissing {
        /// The value.
        chain: Chain,
    },
}

impl fmt::Display for LogProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogProblemKind::Changed { seq } => {
                write!(
                    f,
                    "record {seq} does not fit its chain: it was changed or cut, or the end of the record before it was"
                )
            }
            LogProblemKind::Removed { first, last } => {
                write!(f, "{} missing before this line: removed by somebody", range(*first, *last))
            }
            LogProblemKind::RemovedAtEnd { first, last } => {
                write!(f, "{} missing at the end, as `head` tells: removed by somebody", range(*first, *last))
            }
            LogProblemKind::Reordered { seq, after } => {
                write!(f, "record {seq} stands after record {after}: the line was moved or copied here")
            }
            LogProblemKind::Torn { lines } => {
                write!(f, "{} no whole record: a writer was killed while it wrote", count(*lines))
            }
            LogProblemKind::Unchained { lines } => {
                write!(
                    f,
                    "{} without a chain: nothing shows whether somebody changed, added or removed any",
                    count(*lines)
                )
            }
            LogProblemKind::Replaced { seq } => {
                write!(f, "record {seq} is not the one that `head` names: somebody wrote the end of the log anew")
            }
            LogProblemKind::HeadMissing => {
                f.write_str("is missing: nothing shows whether somebody removed records from the end of the log")
            }
            LogProblemKind::HeadUnreadable => f.write_str(
                "is not as a writer leaves it: nothing shows whether records are missing from the end of the log",
            ),
            LogProblemKind::NotedMissing { chain } => {
                write!(
                    f,
                    "no record has the noted chain {chain}: the log was written anew, or the record was moved away"
                )
            }
        }
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("record {first} is") } else { format!("records {first} to {last} are") }
}

fn count(lines: u64) -> String {
    if lines == 1 { "this line is".to_owned() } else { format!("{lines} lines from here are") }
}
