//! What came of reading a source, with everything that was wrong in it.

use std::path::Path;

use crate::tool::{ScriptedHook, Tool};

use super::diagnostics::{Diagnostics, ScopedDiagnostic};
use super::markdown::ToolsPolicy;

/// Tools, hooks and problems in the order of their source.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) tools: Vec<Tool>,
    pub(super) hooks: Vec<ScriptedHook>,
    pub(super) policies: Vec<ToolsPolicy>,
    pub(super) problems: Vec<ScopedDiagnostic>,
}

impl Parsed {
    /// Of a source that brought nothing, and why.
    pub(super) fn failed(path: &Path, why: &str) -> Self {
        let mut report = Diagnostics::new(path);
        report.error(why);
        Self::of(None, report)
    }

    /// Of a file with tools.
    pub(super) fn of(tools: impl IntoIterator<Item = Tool>, report: Diagnostics) -> Self {
        Self { tools: tools.into_iter().collect(), hooks: Vec::new(), policies: Vec::new(), problems: report.problems }
    }

    /// What another file of the same source brought.
    pub(super) fn add(&mut self, other: Self) {
        self.tools.extend(other.tools);
        self.hooks.extend(other.hooks);
        self.policies.extend(other.policies);
        self.problems.extend(other.problems);
    }
}
