//! Quota of one call for its folders, in bytes and in entries. Nothing is written against a rule about flows. Removing a file does not give its quota back, so that a
//! guest that writes and removes in turn is stopped too.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{DynOutputStream, FsError, OutputStream, Pollable, StreamError, StreamResult};

use crate::flow::Way;
use crate::sandbox::causes::WriteRefused;
use crate::sandbox::usage::Usage;
use crate::tool::Limits;

impl WriteRefused {
    /// Error for the guest.
    pub(in crate::sandbox) fn code(self) -> ErrorCode {
        match self {
            Self::Bytes | Self::Entries => ErrorCode::Quota,
            Self::Flow => ErrorCode::NotPermitted,
        }
    }
}

impl From<WriteRefused> for FsError {
    fn from(refused: WriteRefused) -> Self {
        refused.code().into()
    }
}

/// Quota of one call. Every clone counts on the same usage.
#[derive(Debug, Clone)]
pub(in crate::sandbox) struct Quota {
    pub(super) usage: Arc<Usage>,
    bytes: u64,
    entries: u64,
}

impl Quota {
    pub(super) fn new(limits: &Limits, usage: &Arc<Usage>) -> Self {
        Self { usage: usage.clone(), bytes: limits.disk_bytes, entries: limits.disk_entries }
    }

    /// Counts bytes that are about to be written, or that a file is about to grow by.
    pub(super) fn bytes(&self, more: u64) -> Result<(), WriteRefused> {
        self.count(&self.usage.whole().disk_bytes, more, self.bytes, WriteRefused::Bytes)
    }

    /// Counts a file, folder or link that is about to be created.
    pub(super) fn entry(&self) -> Result<(), WriteRefused> {
        self.count(&self.usage.whole().disk_entries, 1, self.entries, WriteRefused::Entries)
    }

    /// Takes back the entry that was counted last, after it was not created.
    pub(super) fn uncount_entry(&self) {
        self.usage.whole().disk_entries.fetch_sub(1, Relaxed);
    }

    /// Refuses a change if a rule about flows forbids it after what the call has read.
    pub(super) fn flow(&self) -> Result<(), WriteRefused> {
        let flow = &self.usage.whole().flow;
        if !flow.closes(Way::Write) {
            return Ok(());
        }
        flow.refusal(Way::Write).into_iter().for_each(|(denial, _)| self.usage.refused(denial));
        self.usage.refused_write.get_or_init(|| WriteRefused::Flow);
        Err(WriteRefused::Flow)
    }

    fn count(&self, counter: &AtomicU64, more: u64, cap: u64, over: WriteRefused) -> Result<(), WriteRefused> {
        self.flow()?;
        let add = |used: u64| used.checked_add(more).filter(|total| *total <= cap);
        match counter.fetch_update(Relaxed, Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => {
                // The first reason explains later failures.
                self.usage.refused_write.get_or_init(|| over);
                Err(over)
            }
        }
    }
}

/// Returns the number of bytes between a file's end and a position after it, which a write there adds to the file.
pub(super) fn hole(file: &File, at: u64) -> u64 {
    if at == 0 {
        return 0;
    }
    // If the size is unknown, all bytes count, as in an empty file.
    at.saturating_sub(file.metadata().map_or(0, |file| file.len()))
}

/// Stream into a file, counted before each write.
pub(super) struct CountedStream {
    inner: DynOutputStream,
    quota: Quota,
    /// File and position of the first write, until it is counted. Later writes continue where it ended.
    start: Option<(Arc<File>, u64)>,
}

impl CountedStream {
    pub(super) fn new(inner: DynOutputStream, quota: Quota, start: Option<(Arc<File>, u64)>) -> Self {
        Self { inner, quota, start }
    }

    fn count(&mut self, bytes: &Bytes) -> StreamResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let hole = self.start.as_ref().map_or(0, |(file, at)| hole(file, *at));
        let counted = self.quota.bytes(hole.saturating_add(bytes.len() as u64));
        counted.map_err(|over| StreamError::LastOperationFailed(wasmtime::Error::from(over)))?;
        self.start = None;
        Ok(())
    }
}

#[async_trait]
impl OutputStream for CountedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.count(&bytes)?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.count(&bytes)?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait]
impl Pollable for CountedStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_refused_whole_and_what_fits_still_goes() {
        let limits = Limits { disk_bytes: 10, disk_entries: 1, ..Limits::default() };
        let usage = Arc::default();
        let quota = Quota::new(&limits, &usage);
        assert_eq!(quota.bytes(8), Ok(()));
        assert_eq!(quota.bytes(3), Err(WriteRefused::Bytes));
        assert_eq!(quota.bytes(u64::MAX), Err(WriteRefused::Bytes));
        assert_eq!(quota.bytes(2), Ok(()));
        assert_eq!(usage.refused_write.get(), Some(&WriteRefused::Bytes));
        assert_eq!(quota.entry(), Ok(()));
        quota.uncount_entry();
        assert_eq!(quota.entry(), Ok(()));
        assert!(quota.entry().is_err());
    }
}
