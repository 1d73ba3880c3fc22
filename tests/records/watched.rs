//! Runtime that writes Agent Tool records, and the Agent Tool records as read from their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::{Builder, Runtime, ToolCall, ToolResult};
use toolcrib_agent_tool::{AgentToolRecorder, Error};

use super::standard::kinds_of_a_run;
use crate::crib::{Crib, nesting};

/// Folder of Agent Tool records, and its writer.
pub(crate) struct Watched {
    dir: TempDir,
    records: Option<Arc<AgentToolRecorder>>,
}

/// Agent Tool records of a run by kind.
pub(crate) struct Run(BTreeMap<&'static str, Vec<Value>>);

impl Watched {
    pub(crate) fn new() -> Self {
        Self::with(|records| records)
    }

    /// The same, with a configured recorder.
    pub(crate) fn with(settle: impl FnOnce(AgentToolRecorder) -> AgentToolRecorder) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let records =
            settle(AgentToolRecorder::folder(dir.path().join("records")).expect("a folder that can be written"));
        Self { dir, records: Some(Arc::new(records)) }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("records")
    }

    /// Builder of a runtime with the tools of a crib and this recorder.
    pub(crate) fn builder(&self, crib: &Crib) -> Builder {
        let records = self.records.clone().expect("records that are open");
        nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).observer(records)
    }

    /// Waits until everything is written.
    pub(crate) fn finish(&self) {
        self.try_finish().expect("records that could be written");
    }

    /// The same, returning an error instead of panicking.
    pub(crate) fn try_finish(&self) -> Result<(), Error> {
        self.records.as_ref().expect("records that are open").finish()
    }

    /// Closes the files and reads them.
    pub(crate) fn close(mut self) -> Run {
        self.finish();
        drop(self.records.take());
        Run::read(&self.folder())
    }
}

impl Run {
    /// Reads the Agent Tool records in a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let read = |kind| {
            let text = fs::read_to_string(folder.join(kind).with_extension("ndjson")).expect("a file of records");
            assert!(text.is_empty() || text.ends_with('\n'), "{kind}: a torn tail");
            (kind, text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect())
        };
        Self(kinds_of_a_run().map(read).collect())
    }

    /// Agent Tool records of a kind.
    pub(crate) fn all(&self, kind: &str) -> &[Value] {
        &self.0[kind]
    }

    /// The only Agent Tool record of a kind.
    #[track_caller]
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let [record] = self.all(kind) else { panic!("{kind}: {:#?}", self.all(kind)) };
        record
    }

    /// Agent Tool record of a kind for the call with this identifier.
    #[track_caller]
    pub(crate) fn of(&self, kind: &str, call: &str) -> &Value {
        let invocation = self.all("invocations").iter().find(|record| record["native_call_id"] == call);
        let id = &invocation.unwrap_or_else(|| panic!("no call {call}"))["invocation_id"];
        self.all(kind).iter().find(|record| record["invocation_id"] == *id).unwrap_or_else(|| panic!("no {kind}"))
    }

    /// Agent Tool records by kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &[Value])> {
        self.0.iter().map(|(kind, records)| (*kind, records.as_slice()))
    }

    /// All of them as text.
    pub(crate) fn text(&self) -> String {
        self.0.values().flatten().map(ToString::to_string).collect()
    }

    /// Values of a field in the Agent Tool records of a kind.
    pub(crate) fn values(&self, kind: &str, field: &str) -> Vec<String> {
        self.all(kind).iter().map(|record| record[field].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// States of the only call, in order.
    #[track_caller]
    pub(crate) fn states(&self) -> Vec<String> {
        let transitions = self.only("invocations")["status_transitions"].as_array().expect("transitions").clone();
        transitions.iter().map(|turn| turn["status"].as_str().expect("a state").to_owned()).collect()
    }
}

/// Calls a tool once.
pub(crate) fn call(runtime: &Runtime, name: &str, arguments: &Value) -> ToolResult {
    on_threads(nesting::call(runtime, ToolCall::new(name, name, arguments.to_string())))
}

/// Runs a future to its end on new threads.
pub(crate) fn on_threads<T>(future: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    tokio.block_on(future)
}
