//! Changes that a call may have made outside the conversation, which no `/undo` takes back.

use toolcrib::{Outcome, Tool, ToolResult};
use toolcrib_base::render::{one_line, shortened};

use super::MAX_MESSAGE;

/// Describes a call that may have changed something; `None` for one that cannot have done so.
pub(super) fn change_of(tool: Option<&Tool>, result: &ToolResult) -> Option<String> {
    let receipt = &result.receipt;
    let is_read_only = tool.is_some_and(|tool| tool.interface.safety.is_read_only.value);
    let can_write = receipt.granted.iter().any(|granted| granted.starts_with("write:"));
    let has_acted = receipt.disk_bytes > 0
        || receipt.disk_entries > 0
        || receipt.calls > 0
        || receipt.delegated > 0
        || receipt.network.as_ref().is_some_and(|network| network.count > 0);
    let never_ran = matches!(receipt.outcome, Outcome::Denied | Outcome::BadArguments);
    let words = result.display.as_deref().unwrap_or(&receipt.tool);
    let may_change = !never_ran && (has_acted || (can_write && !is_read_only));
    may_change.then(|| shortened(&one_line(words), MAX_MESSAGE).into_owned())
}
