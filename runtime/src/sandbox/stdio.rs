//! Standard output and standard error with a cap: what is within it is kept, the write that exceeds it ends the call.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::usage::Usage;

/// How much a guest may write at once.
const PERMIT: usize = 64 * 1024;

/// The stream whose cap was exceeded. It travels as the trap's cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverCap {
    Stdout,
    Stderr,
}

impl fmt::Display for OverCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OverCap::Stdout => "standard output",
            OverCap::Stderr => "standard error",
        })
    }
}

impl std::error::Error for OverCap {}

/// One of the two output streams. Every clone writes to the same buffer.
#[derive(Debug, Clone)]
pub(super) struct Capped {
    which: OverCap,
    cap: usize,
    usage: Arc<Usage>,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Capped {
    pub(super) fn new(which: OverCap, cap: usize, usage: &Arc<Usage>) -> Self {
        Self { which, cap, usage: usage.clone(), kept: Arc::default() }
    }

    /// What was written, leaving nothing behind.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn counter(&self) -> &AtomicU64 {
        match self.which {
            OverCap::Stdout => &self.usage.stdout,
            OverCap::Stderr => &self.usage.stderr,
        }
    }
}

impl OutputStream for Capped {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.cap - kept.len();
        let fits = bytes.len().min(room);
        kept.extend_from_slice(&bytes[..fits]);
        self.counter().fetch_add(fits as u64, Relaxed);
        if fits == bytes.len() {
            return Ok(());
        }
        self.usage.truncated.store(true, Relaxed);
        Err(StreamError::Trap(wasmtime::Error::from(self.which)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[async_trait]
impl Pollable for Capped {
    async fn ready(&mut self) {}
}

impl IsTerminal for Capped {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capped {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Asked for only by guests of WASI 0.3, which are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
