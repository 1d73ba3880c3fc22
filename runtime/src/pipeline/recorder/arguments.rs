//! Arguments in the call's record: those that the tool got, masked when the call ends, when all secrets that it used
//! are known.

use std::sync::Arc;

use crate::audit::{CallArguments, LoggedArguments};
use crate::schema::{CheckedArguments, ToolValidator};

use super::CallRecorder;

impl CallRecorder<'_> {
    /// Sets the checks of the tool, which name its sensitive arguments.
    pub(crate) fn set_validator(&mut self, validator: &Arc<ToolValidator>) {
        if let Some(arguments) = &mut self.arguments {
            arguments.set_validator(validator);
        }
    }

    /// Records checked arguments: first the call's own, later the ones that a hook changed.
    pub(crate) fn set_arguments(&mut self, checked: &CheckedArguments) {
        if let Some(arguments) = &mut self.arguments {
            arguments.add(checked);
        }
    }

    /// Omits the arguments, which the record for an event hook does not have.
    pub(crate) fn without_arguments(mut self: Box<Self>) -> Box<Self> {
        self.arguments = None;
        self
    }

    /// Returns the arguments, if the record holds any.
    pub(crate) fn arguments(&self) -> Option<&CallArguments> {
        self.arguments.as_ref()
    }

    /// Sets the arguments as the record represents them.
    pub(crate) fn set_logged(&mut self, logged: LoggedArguments) {
        self.logged = Some(logged);
    }

    /// Represents the arguments at once, by their size alone if they are large or take long.
    pub(super) fn represent_at_once(&self) -> Option<LoggedArguments> {
        let arguments = self.arguments.as_ref()?;
        Some(self.audit.represent_at_once(arguments).unwrap_or_else(|| arguments.size_alone()))
    }
}
