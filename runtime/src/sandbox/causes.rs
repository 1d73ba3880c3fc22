//! Reasons for which the host stops a guest. Each one travels as the cause of a trap or of a failed stream, and `trap`
//! turns it into the error of the call.

use std::fmt;

/// Deadline that passed while the guest computed.
#[derive(Debug)]
pub(super) struct DeadlinePassed;

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed")
    }
}

impl std::error::Error for DeadlinePassed {}

/// Output stream that exceeded its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputExceeded {
    Stdout,
    Stderr,
}

impl fmt::Display for OutputExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutputExceeded::Stdout => "standard output",
            OutputExceeded::Stderr => "standard error",
        })
    }
}

impl std::error::Error for OutputExceeded {}

/// Reason for which a call may not write to its folders. In a stream it travels as the error of the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteRefused {
    Bytes,
    Entries,
    /// A rule about flows.
    Flow,
}

impl fmt::Display for WriteRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteRefused::Bytes => "the call reached its limit of written bytes",
            WriteRefused::Entries => "the call reached its limit of new files, folders and links",
            WriteRefused::Flow => "a rule about flows forbids the call to write after what it has read",
        })
    }
}

impl std::error::Error for WriteRefused {}

/// Call of a socket function that has no error for a refusal in its type.
#[derive(Debug)]
pub(super) struct SocketRefused(pub(super) String);

impl fmt::Display for SocketRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool used a socket (`{}`), and sockets are not available to tools", self.0)
    }
}

impl std::error::Error for SocketRefused {}

/// Number of bytes, printed in the largest unit that divides it.
pub(super) struct ByteSize(pub(super) u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}
