//! Input and output of a guest call.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::ToolError;
use crate::policy::{Credentials, Grant};
use crate::tool::Limits;

use super::causes::OutputExceeded;
use super::usage::Usage;
use super::wasi::{CappedStream, WasiExtras};

/// Input of a guest call, and the permissions and limits under which it runs.
pub(crate) struct GuestInput<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) stdin: Bytes,
    pub(crate) grant: &'a Grant,
    /// Values of the grant's secrets, if it has any.
    pub(crate) credentials: Option<&'a Arc<Credentials>>,
    pub(crate) limits: &'a Limits,
    /// Host data for `wasi:config` and `wasi:keyvalue`.
    pub(crate) extras: WasiExtras,
}

/// Output of a guest call.
pub(crate) struct GuestOutput<T> {
    /// Returned value, or the error that ended the call.
    pub(crate) result: Result<T, ToolError>,
    /// Standard output of a command; empty for other guests, which return their answer.
    pub(crate) stdout: Vec<u8>,
    /// Standard error. Guests that return their answer write both streams here.
    pub(crate) stderr: Vec<u8>,
}

/// Standard streams of a guest call.
pub(super) struct Streams {
    stdout: Option<CappedStream>,
    stderr: CappedStream,
}

impl Streams {
    /// Creates a standard output with this cap, and a standard error.
    pub(super) fn separate(stdout_cap: usize, limits: &Limits, usage: &Arc<Usage>) -> Self {
        let stdout = CappedStream::new(OutputExceeded::Stdout, stdout_cap, usage);
        Self { stdout: Some(stdout), ..Self::merged(limits, usage) }
    }

    /// Creates one stream for both outputs.
    pub(super) fn merged(limits: &Limits, usage: &Arc<Usage>) -> Self {
        Self { stdout: None, stderr: CappedStream::new(OutputExceeded::Stderr, limits.stderr, usage) }
    }

    pub(super) fn stdout(&self) -> &CappedStream {
        self.stdout.as_ref().unwrap_or(&self.stderr)
    }

    pub(super) fn stderr(&self) -> &CappedStream {
        &self.stderr
    }

    /// Combines the result of a call with its output.
    pub(super) fn into_output<T>(self, result: Result<T, ToolError>) -> GuestOutput<T> {
        let stdout = self.stdout.map(|stdout| stdout.take()).unwrap_or_default();
        GuestOutput { result, stdout, stderr: self.stderr.take() }
    }
}
