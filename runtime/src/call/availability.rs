//! Availability of a tool to a model.

use super::Decision;

/// Availability of a tool to a model.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Availability<'a> {
    /// A model sees the tool from the start.
    Loaded,
    /// A model finds the tool by a search.
    Deferred,
    /// The tool's entry or program is wrong.
    Unusable {
        /// Reason in words for the model.
        reason: &'a str,
    },
    /// A rule, an Agent Tool record or a policy disables the tool.
    Disabled {
        /// Decision that disables it.
        decision: &'a Decision,
        /// Reason in words for the model.
        reason: &'a str,
    },
}
