//! Labels that the calls of one conversation share.

use std::sync::{Arc, Mutex};

use super::Label;

/// Label that several calls share.
pub(crate) type SharedLabel = Arc<Mutex<Label>>;

/// Labels of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConversationLabels {
    /// Label of all that calls have read and the model may have seen.
    pub(crate) seen: SharedLabel,
    /// Label of all that calls may have left for others, in files, stores or elsewhere. It is kept only if rules withhold answers.
    pub(crate) left: SharedLabel,
}
