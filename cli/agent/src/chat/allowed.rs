//! Approvals in a chat: tools that the person allowed ahead, else a question at the terminal.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Pattern};
use toolcrib_settings::permission::TerminalApprover;

/// Patterns of tools that are allowed ahead. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct AllowedAhead(Arc<Mutex<Vec<Pattern>>>);

impl AllowedAhead {
    /// Adds a pattern.
    pub(super) fn add(&self, pattern: Pattern) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pattern);
    }

    /// Returns the texts of the patterns.
    pub(super) fn texts(&self) -> Vec<String> {
        let patterns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
    }

    fn covers(&self, tool: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|pattern| pattern.matches_tool(tool))
    }
}

/// Approver of a chat.
pub struct ChatApprover {
    allowed: AllowedAhead,
    terminal: Arc<TerminalApprover>,
}

impl ChatApprover {
    /// Creates an approver that asks `terminal` about everything that is not allowed ahead.
    pub fn new(allowed: AllowedAhead, terminal: Arc<TerminalApprover>) -> Self {
        Self { allowed, terminal }
    }
}

impl Approver for ChatApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        // A tool that asks each time is not covered by an approval that was given ahead, and a flow depends on what was read since.
        match request.approval.is_some() && request.flow.is_none() && self.allowed.covers(&request.tool.name) {
            true => std::future::ready(ApprovalAnswer::Once).boxed(),
            false => self.terminal.ask(request),
        }
    }
}
