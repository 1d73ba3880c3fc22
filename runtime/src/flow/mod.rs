//! Information flow, as the host observes it: the label of each result, the operator's labels for places, and the flows that
//! rules are about.
//!
//! Labels are observed where bytes pass the host, and combined call by call: a result depends on the arguments of its call, and
//! on all that the call has read. No tool can set or clear one.

mod conversation;
mod label;
mod labels;
mod pattern;

pub use label::{Integrity, Label, LabelError};
pub use labels::{LabelPlace, Labels, LabelsError, Meaning};
pub use pattern::FlowPatternError;

pub(crate) use conversation::{ConversationLabels, SharedLabel};
pub(crate) use label::{Mark, PRIVATE};
pub(crate) use labels::Source;
pub(crate) use pattern::{FlowPattern, Way, Ways};
