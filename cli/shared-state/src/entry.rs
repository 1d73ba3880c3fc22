//! Entries: their names, their kinds with all limits, and claims.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use toolcrib::source::digest;

use crate::error::StoreError;

/// Kind of an entry, which decides about its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// Call with a key of its client.
    Call,
    /// State of a repeated request that was used.
    UsedState,
    /// Key that seals these states.
    SealKey,
    /// Result of a call that is too long for a model.
    Result,
    /// Digest of a client's token, with its rights.
    Token,
    /// List of the servers, such as permanent approvals.
    List,
    /// Value that a tool stores.
    ToolValue,
    /// Last records of an audit log at earlier times.
    AuditHead,
}

impl StateKind {
    /// Name of the kind in a store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::UsedState => "used-state",
            Self::SealKey => "seal-key",
            Self::Result => "result",
            Self::Token => "token",
            Self::List => "list",
            Self::ToolValue => "tool-value",
            Self::AuditHead => "audit-head",
        }
    }

    /// Time that an entry is kept after its last change.
    pub fn lifetime(self) -> Duration {
        match self {
            Self::Call => Duration::from_hours(24),
            // A state lives for ten minutes, and the clocks of servers may differ by as much.
            Self::UsedState => Duration::from_mins(20),
            Self::SealKey | Self::Token | Self::List | Self::ToolValue => Duration::from_hours(24 * 365 * 100),
            Self::Result => Duration::from_hours(24 * 7),
            Self::AuditHead => Duration::from_hours(24 * 400),
        }
    }

    /// Maximum size of a value in bytes.
    pub fn max_value(self) -> usize {
        match self {
            Self::Call => 2 << 20,
            Self::UsedState => 0,
            Self::SealKey => 32,
            Self::Result => 4 << 20,
            Self::Token | Self::AuditHead => 64 << 10,
            Self::List => 16 << 20,
            // With its key.
            Self::ToolValue => (1 << 20) + 1026,
        }
    }

    /// Maximum number of entries in files, and maximum bytes in their values.
    pub(crate) fn max_in_files(self) -> (u64, u64) {
        match self {
            Self::Call => (20_000, 1 << 30),
            Self::UsedState => (65_536, 0),
            Self::SealKey => (1, 32),
            // They have files of their own.
            Self::Result | Self::Token | Self::List | Self::ToolValue | Self::AuditHead => (0, 0),
        }
    }

    /// Maximum entries for each owner in a database, and maximum bytes in their values.
    pub(crate) fn max_of_owner(self) -> (u64, u64) {
        match self {
            Self::Call => (10_000, 256 << 20),
            Self::UsedState => (4096, 1),
            Self::SealKey => (16, 1024),
            Self::Result => (1000, 128 << 20),
            Self::Token | Self::AuditHead => (1000, 16 << 20),
            Self::List => (16, 64 << 20),
            Self::ToolValue => (1000, 16 << 20),
        }
    }
}

/// Name of an entry. Owners cannot reach the entries of one another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateName {
    /// Kind of the entry.
    pub kind: StateKind,
    /// Owner, such as the holder of a token; empty for the servers themselves.
    pub owner: String,
    /// Name among the owner's entries of the kind.
    pub key: String,
}

impl StateName {
    /// Names an entry.
    pub fn new(kind: StateKind, owner: impl Into<String>, key: impl Into<String>) -> Self {
        Self { kind, owner: owner.into(), key: key.into() }
    }

    /// Checks the size of a value.
    ///
    /// # Errors
    ///
    /// The value is too large for the kind.
    pub(crate) fn check(&self, value: &[u8]) -> Result<(), StoreError> {
        let max_len = self.kind.max_value();
        match value.len() <= max_len {
            true => Ok(()),
            false => {
                Err(StoreError::Full(format!("a value of {} bytes is over the maximum of {max_len}", value.len())))
            }
        }
    }

    /// Returns the name of the entry's file.
    pub(crate) fn file_name(&self) -> String {
        let name = digest(&[self.owner.as_bytes(), b"\0", self.key.as_bytes()].concat());
        format!("{}.json", name.trim_start_matches("sha256:"))
    }
}

/// Result of a claim.
#[derive(Debug)]
pub enum StateClaim {
    /// The entry is new, and held.
    New(Box<dyn HeldState>),
    /// Another call holds the entry.
    Held,
    /// The entry has this value, and nothing holds it.
    Existing(Vec<u8>, Box<dyn UnheldState>),
}

/// Entry that is held. Dropping it leaves its value as it is, and holds it no longer.
pub trait HeldState: fmt::Debug + Send + Sync {
    /// Writes the last value, and holds the entry no longer. A store that does not answer may write it later.
    fn finish(self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// Entry that nothing holds, as it was found.
pub trait UnheldState: fmt::Debug + Send + Sync {
    /// Holds the entry with a new value, unless it was changed or held meanwhile (`None`).
    fn hold(self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<Option<Box<dyn HeldState>>, StoreError>>;
}
