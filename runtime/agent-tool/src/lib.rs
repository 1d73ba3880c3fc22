//! Agent Tool records, version 0.2.0 of the standard: [`Inventory`] describes tools, and [`AgentToolRecorder`] writes the
//! records of their calls as an [`Observer`]. [`State`], [`Status`], [`ErrorClass`] and [`EventType`] are the standard's
//! vocabularies. A record states nothing that did not happen. No record holds a path of the host, except the position at
//! which an operator wrote a rule.
//!
//! # Identifiers
//!
//! Identifiers of a call's records start with its `invocation_id`: `ID/event/N`, `ID/progress/N`, `ID/hook/N`, `ID/mutation/N`,
//! `ID/decision/N`, `ID/persistence` and `ID/result`. `ID/input/N` are the arguments after N changes; 0 is the model's own
//! text. The records of a tool are `TOOL/interface`, `TOOL/execution` and `TOOL/permission`, unless its source names a
//! profile of its own.
//!
//! # Redaction
//!
//! Records leave out the values that a schema marks as sensitive, wherever they are repeated, and the matches of the
//! operator's redactions. For a tool with a sensitive argument, and for an unknown tool, the model's text is represented by
//! its size alone. A text longer than 64 KiB is represented by its first 2 KiB, its size and its digest.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use toolcrib::{Audit, Runtime};
//! use toolcrib_agent_tool::AgentToolRecorder;
//!
//! # fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = Arc::new(AgentToolRecorder::folder("./records")?);
//! let runtime = Runtime::builder(Audit::folder("./audit")).source("tools.json").observer(recorder.clone()).build()?;
//! // … calls …
//! recorder.finish()?;
//! # Ok(()) }
//! ```

mod error;
mod inventory;
mod invocation;
mod redactor;
mod vocabulary;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib::Tool;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::policy::Secrets;

use invocation::{Invocation, Record};
use redactor::Redactor;
use writer::Writer;

pub use error::Error;
pub use inventory::{Inventory, InventoryEntry, SchedulerPolicy};
pub use vocabulary::{ErrorClass, EventType, Recoverability, State, Status};

/// Version of the standard in every record.
pub const SCHEMA_VERSION: &str = "0.2.0";

/// Producer named in records.
const PRODUCER: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));
/// Identifier of the scheduler policy.
const SCHEDULER: &str = "toolcrib.scheduler";

/// Observer that writes the records of calls into a folder, one NDJSON file for each kind. Several processes may share a
/// folder.
///
/// A thread of its own writes the files. Dropping the recorder waits until every record is written.
pub struct AgentToolRecorder {
    invocations: Mutex<HashMap<String, Arc<Mutex<Invocation>>>>,
    redactor: Redactor,
    writer: Writer,
}

impl AgentToolRecorder {
    /// Opens a folder, and creates it with owner-only permissions if it is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] if the folder or its files cannot be opened, or if others can write to the folder.
    pub fn folder(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { invocations: Mutex::default(), redactor: Redactor::default(), writer: Writer::open(path.into())? })
    }

    /// Masks the matches of patterns in all text from outside the host. A pattern is a regular expression, or literal text
    /// if it is not a valid one.
    #[must_use]
    pub fn redact(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.redactor.redactions.add(patterns);
        self
    }

    /// Masks literal texts in all text from outside the host.
    #[must_use]
    pub fn redact_literal(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.redactor.redactions.add_literal(texts);
        self
    }

    /// Masks the secrets used by calls, in each of their encodings.
    #[must_use]
    pub fn redact_secrets(mut self, secrets: &Secrets) -> Self {
        self.redactor.redactions.add_secrets(secrets.clone());
        self
    }

    /// Folder of the records. Tools must not reach it; see [`reserve`](toolcrib::Builder::reserve).
    pub fn path(&self) -> &Path {
        self.writer.folder()
    }

    /// Waits until every record is written, and reports lost records once.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] with the first cause and the number of records lost since the last call of this function.
    pub fn finish(&self) -> Result<(), Error> {
        self.writer.finish()
    }

    fn write(&self, (kind, record): Record) {
        let mut line = record.to_string().into_bytes();
        line.push(b'\n');
        self.writer.line(kind, line);
    }
}

impl Observer for AgentToolRecorder {
    fn observe(&self, event: &Event<'_>) {
        let mut invocations = self.invocations.lock().unwrap_or_else(PoisonError::into_inner);
        let invocation = match event.kind {
            EventKind::Ended(_) => invocations.remove(event.invocation),
            _ => invocations.get(event.invocation).cloned(),
        };
        let invocation = invocation.unwrap_or_else(|| {
            let invocation = Arc::new(Mutex::new(Invocation::new(event, &self.redactor)));
            if !matches!(event.kind, EventKind::Ended(_)) {
                invocations.insert(event.invocation.to_owned(), invocation.clone());
            }
            invocation
        });
        drop(invocations);
        let records = invocation.lock().unwrap_or_else(PoisonError::into_inner).observe(event, &self.redactor);
        records.into_iter().for_each(|record| self.write(record));
    }
}

impl Drop for AgentToolRecorder {
    /// Writes the invocations that have not ended in their last state.
    fn drop(&mut self) {
        let invocations = std::mem::take(self.invocations.get_mut().unwrap_or_else(PoisonError::into_inner));
        for invocation in invocations.into_values() {
            let record = invocation.lock().unwrap_or_else(PoisonError::into_inner).unfinished(&self.redactor);
            self.write(record);
        }
    }
}

/// Returns the identifier of a tool in records.
pub fn tool_id(tool: &Tool) -> String {
    let identity = &tool.interface.identity;
    match identity.tool_id.value.as_str() {
        "" => format!("{}.{}", identity.namespace.value, tool.name),
        id => id.to_owned(),
    }
}

/// Creates a record: the version of the standard, then the fields.
fn record(fields: Value) -> Value {
    let mut record = json!({ "schema_version": SCHEMA_VERSION });
    if let (Value::Object(record), Value::Object(fields)) = (&mut record, compact(fields)) {
        record.extend(fields);
    }
    record
}

/// Removes null fields and empty lists from an object.
fn compact(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
    }
    object
}

/// Formats a time in UTC by RFC 3339, always with milliseconds, so that records sort as text.
fn time(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}
