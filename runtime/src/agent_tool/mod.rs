//! The records of the Agent Tool standard, version 0.2.0: [`Crib`] tells what tools there are, [`AgentToolRecorder`] what became of
//! their calls. The words that they use stand in [`State`], [`Status`], [`ErrorClass`] and [`EventType`]. A record says
//! nothing that did not happen. None holds a path of the host, but for the place at which an operator wrote a rule.
//!
//! # Identifiers
//!
//! Everything that is known of a call hangs on its `invocation_id`: `ID/event/N`, `ID/progress/N`, `ID/hook/N`,
//! `ID/mutation/N`, `ID/decision/N`, `ID/persistence` and `ID/result`. `ID/input/N` are its arguments after N changes; 0 is
//! what the model sent. A tool's records are `TOOL/interface`, `TOOL/execution` and `TOOL/permission`, where its source
//! names no profile of its own.
//!
//! # EventKind is not in them
//!
//! Values that a schema marks as sensitive, wherever they are repeated, and what the operator's masks match. Where a tool
//! marks anything as sensitive, or was not found, what the model sent is told by its size alone. A text of more than 64 KiB is told by its first 2 KiB,
//! its size and its digest.

mod call;
mod crib;
mod shown;
mod word;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::Error;
use crate::observe::{Event, EventKind, Observer};
use crate::policy::Secrets;
use crate::tool::Tool;

use call::{Call, Line};
use shown::Shown;
use writer::Writer;

pub use crib::{Crib, CribEntry, Order};
pub use word::{ErrorClass, EventType, Recoverability, State, Status};

/// The version of the standard that every record follows.
pub const SCHEMA_VERSION: &str = "0.2.0";

/// Who makes the records.
const PRODUCER: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));
/// The policy by which the calls of a step are put in order.
const SCHEDULER: &str = "toolcrib.scheduler";

/// Watches calls and writes their records into a folder, one NDJSON file a kind. Several processes may use one folder.
///
/// It hands lines to a thread of its own. Nothing is lost while that thread can write: dropping it waits for the rest.
pub struct AgentToolRecorder {
    calls: Mutex<HashMap<String, Arc<Mutex<Call>>>>,
    shown: Shown,
    writer: Writer,
}

impl AgentToolRecorder {
    /// AgentToolRecorder in a folder, made with owner-only rights where it is missing.
    ///
    /// # Errors
    ///
    /// [`Error::AgentToolRecorder`] where the folder or its files cannot be written, or are others' to write.
    pub fn folder(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { calls: Mutex::default(), shown: Shown::default(), writer: Writer::open(path.into())? })
    }

    /// Masks what these patterns match in everything that comes from outside. Each is a regular expression, or, where it
    /// is not a valid one, the text itself.
    #[must_use]
    pub fn redact(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.shown.redactions.add(patterns);
        self
    }

    /// Masks these texts, letter for letter, in everything that comes from outside.
    #[must_use]
    pub fn redact_literal(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.shown.redactions.add_literal(texts);
        self
    }

    /// Masks the secrets that calls were given, in each of their encodings.
    #[must_use]
    pub fn redact_secrets(mut self, secrets: &Secrets) -> Self {
        self.shown.redactions.add_secrets(secrets.clone());
        self
    }

    /// The folder, which no tool may reach.
    pub fn path(&self) -> &Path {
        self.writer.folder()
    }

    /// Waits until all that was told so far is written, and tells once what could not be.
    ///
    /// # Errors
    ///
    /// [`Error::AgentToolRecorder`] with the first reason and the number of records lost since this was last asked.
    pub fn finish(&self) -> Result<(), Error> {
        self.writer.finish()
    }

    fn write(&self, (kind, record): Line) {
        let mut line = record.to_string().into_bytes();
        line.push(b'\n');
        self.writer.line(kind, line);
    }
}

impl Observer for AgentToolRecorder {
    fn observe(&self, event: &Event<'_>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = match event.kind {
            EventKind::Ended(_) => calls.remove(event.invocation),
            _ => calls.get(event.invocation).cloned(),
        };
        let call = call.unwrap_or_else(|| {
            let call = Arc::new(Mutex::new(Call::new(event, &self.shown)));
            if !matches!(event.kind, EventKind::Ended(_)) {
                calls.insert(event.invocation.to_owned(), call.clone());
            }
            call
        });
        drop(calls);
        let lines = call.lock().unwrap_or_else(PoisonError::into_inner).note(event, &self.shown);
        lines.into_iter().for_each(|line| self.write(line));
    }
}

impl Drop for AgentToolRecorder {
    /// Calls of which nobody told the end are recorded as they stand.
    fn drop(&mut self) {
        let calls = std::mem::take(self.calls.get_mut().unwrap_or_else(PoisonError::into_inner));
        for call in calls.into_values() {
            let left = call.lock().unwrap_or_else(PoisonError::into_inner).left(&self.shown);
            self.write(left);
        }
    }
}

/// The identifier of a tool in every record.
pub fn tool_id(tool: &Tool) -> String {
    let identity = &tool.interface.identity;
    match identity.tool_id.value.as_str() {
        "" => format!("{}.{}", identity.namespace.value, tool.name),
        id => id.to_owned(),
    }
}

/// A record of these fields.
fn record(fields: Value) -> Value {
    let mut record = json!({ "schema_version": SCHEMA_VERSION });
    if let (Value::Object(record), Value::Object(fields)) = (&mut record, compact(fields)) {
        record.extend(fields);
    }
    record
}

/// An object without what is null or an empty list.
fn compact(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
    }
    object
}

/// A time in UTC as RFC 3339 writes it, with milliseconds always, so that records sort as text.
fn time(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}
