//! Standard output and standard error with a cap. Output within the cap is collected; the write that exceeds it ends
//! the call.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::sandbox::causes::OutputExceeded;
use crate::sandbox::usage::Usage;

/// Maximum number of bytes per write.
const MAX_WRITE: usize = 64 * 1024;

/// One of the two output streams. Every clone writes to the same buffer.
#[derive(Debug, Clone)]
pub(in crate::sandbox) struct CappedStream {
    stream: OutputExceeded,
    cap: usize,
    usage: Arc<Usage>,
    buffer: Arc<Mutex<Vec<u8>>>,
}

impl CappedStream {
    pub(in crate::sandbox) fn new(stream: OutputExceeded, cap: usize, usage: &Arc<Usage>) -> Self {
        Self { stream, cap, usage: usage.clone(), buffer: Arc::default() }
    }

    /// Takes the collected output.
    pub(in crate::sandbox) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn counter(&self) -> &AtomicU64 {
        match self.stream {
            OutputExceeded::Stdout => &self.usage.stdout,
            OutputExceeded::Stderr => &self.usage.stderr,
        }
    }
}

impl OutputStream for CappedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let space = self.cap - buffer.len();
        let fits = bytes.len().min(space);
        buffer.extend_from_slice(&bytes[..fits]);
        self.counter().fetch_add(fits as u64, Relaxed);
        if fits == bytes.len() {
            return Ok(());
        }
        self.usage.truncated.store(true, Relaxed);
        Err(StreamError::Trap(wasmtime::Error::from(self.stream)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

#[async_trait]
impl Pollable for CappedStream {
    async fn ready(&mut self) {}
}

impl IsTerminal for CappedStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for CappedStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Returns a sink. Only guests of WASI 0.3 use this stream, and they are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
