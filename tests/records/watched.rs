//! A runtime whose calls are recorded, and the records as they stand in their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::{Builder, Runtime, ToolCall, ToolResult};
use toolcrib_agent_tool::{AgentToolRecorder, Error};

use super::standard::kinds_of_a_run;
use crate::crib::Crib;

/// A folder of records, and who writes there.
pub(crate) struct Watched {
    dir: TempDir,
    records: Option<Arc<AgentToolRecorder>>,
}

/// The records of a run by kind.
pub(crate) struct Run(BTreeMap<&'static str, Vec<Value>>);

impl Watched {
    pub(crate) fn new() -> Self {
        Self::with(|records| records)
    }

    /// The same, with records that are told something first.
    pub(crate) fn with(settle: impl FnOnce(AgentToolRecorder) -> AgentToolRecorder) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let records =
            settle(AgentToolRecorder::folder(dir.path().join("records")).expect("a folder that can be written"));
        Self { dir, records: Some(Arc::new(records)) }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("records")
    }

    /// A builder of a runtime with the tools of a crib, whose calls are recorded.
    pub(crate) fn builder(&self, crib: &Crib) -> Builder {
        let records = self.records.clone().expect("records that are open");
        Runtime::builder().source(crib.path("tools.json")).observer(records)
    }

    /// Waits until everything is written.
    pub(crate) fn finish(&self) {
        self.try_finish().expect("records that could be written");
    }

    /// The same, where something may be wrong.
    pub(crate) fn try_finish(&self) -> Result<(), Error> {
        self.records.as_ref().expect("records that are open").finish()
    }

    /// Closes the records and reads them.
    pub(crate) fn close(mut self) -> Run {
        self.finish();
        drop(self.records.take());
        Run::read(&self.folder())
    }
}

impl Run {
    /// The records in a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let read = |kind| {
            let text = fs::read_to_string(folder.join(kind).with_extension("ndjson")).expect("a file of records");
            assert!(text.is_empty() || text.ends_with('\n'), "{kind}: a torn tail");
            (kind, text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect())
        };
        Self(kinds_of_a_run().map(read).collect())
    }

    /// The records of a kind.
    pub(crate) fn all(&self, kind: &str) -> &[Value] {
        &self.0[kind]
    }

    /// The one record of a kind.
    #[track_caller]
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let [record] = self.all(kind) else { panic!("{kind}: {:#?}", self.all(kind)) };
        record
    }

    /// The record of a kind of the call with this identifier of the caller's.
    #[track_caller]
    pub(crate) fn of(&self, kind: &str, call: &str) -> &Value {
        let invocation = self.all("invocations").iter().find(|record| record["native_call_id"] == call);
        let id = &invocation.unwrap_or_else(|| panic!("no call {call}"))["invocation_id"];
        self.all(kind).iter().find(|record| record["invocation_id"] == *id).unwrap_or_else(|| panic!("no {kind}"))
    }

    /// The records by kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &[Value])> {
        self.0.iter().map(|(kind, records)| (*kind, records.as_slice()))
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        self.0.values().flatten().map(ToString::to_string).collect()
    }

    /// The values of a field in the records of a kind.
    pub(crate) fn values(&self, kind: &str, field: &str) -> Vec<String> {
        self.all(kind).iter().map(|record| record[field].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The states that the one call went through.
    #[track_caller]
    pub(crate) fn states(&self) -> Vec<String> {
        let transitions = self.only("invocations")["status_transitions"].as_array().expect("transitions").clone();
        transitions.iter().map(|turn| turn["status"].as_str().expect("a state").to_owned()).collect()
    }
}

/// Calls a tool once.
pub(crate) fn call(runtime: &Runtime, name: &str, arguments: &Value) -> ToolResult {
    on_threads(runtime.call(ToolCall::new(name, name, arguments.to_string())))
}

/// Runs a future to its end on threads of its own.
pub(crate) fn on_threads<T>(future: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    tokio.block_on(future)
}
