//! Enums for the values of interface fields, as the Agent Tool standard spells them.

use crate::tool::word::words;

words! {
    /// Visibility of a tool's schema to a model.
    Visibility {
        /// Visible from the start.
        Loaded = "loaded",
        /// Visible after a search.
        Deferred = "deferred",
        /// Never visible: only the host calls the tool.
        Internal = "internal",
        /// Defined elsewhere.
        NativeRef = "native_ref",
    }
    /// Callers of a tool in a runtime that offers programs which call tools.
    Callers {
        /// The model and its programs.
        Both = "both",
        /// The model alone.
        Direct = "direct",
        /// Programs alone.
        Code = "code",
    }
    /// Maximum harm of a call.
    Risk {
        /// No lasting effect.
        Low = "low",
        /// Effect that can be undone.
        Medium = "medium",
        /// Effect that cannot be undone.
        High = "high",
        /// Effect that must not occur unnoticed.
        Critical = "critical",
    }
    /// Effect of an interruption on a running call.
    Interrupt {
        /// The call is stopped.
        Cancel = "cancel",
        /// The call runs to its end.
        Block = "block",
    }
    /// Effect of a failed call on other calls in its step.
    SiblingFailure {
        /// No effect.
        Ignore = "ignore",
        /// All other calls are cancelled.
        CancelSiblings = "cancel_siblings",
        /// Calls that wait for the failed call are cancelled.
        CancelDependent = "cancel_dependent",
    }
    /// Handling of a result that exceeds the inline limit.
    Persistence {
        /// The model receives the full result.
        Inline = "inline",
        /// The model receives a part and a reference to the full result.
        PreviewAndPersist = "preview_and_persist",
        /// The model receives only the reference.
        RefOnly = "ref_only",
        /// The model receives the reason why the result is omitted.
        DropWithReason = "drop_with_reason",
        /// The model receives a part; the full result is not stored.
        NeverPersist = "never_persist",
    }
    /// Result for the model if a tool wrote nothing.
    EmptyResult {
        /// Empty object, as for command tools.
        Object = "object",
        /// Note that the tool wrote nothing.
        Note = "note",
        /// Failure of the call.
        Error = "error",
    }
}
