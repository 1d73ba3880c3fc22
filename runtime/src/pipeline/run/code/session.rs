//! The session of a program: its variables are restored before the program and saved after it.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_foundation::text::{MAX_MESSAGE, truncate};

use crate::error::{Outcome, ToolError};
use crate::pipeline::state::{CallScope, OpenSession};
use crate::sandbox::{CodeEnd, CodeFailureKind, CodeSession};
use crate::store::programs::SavedProgram;

/// Opens a session of the conversation, once no other program uses it: at most after `max_wait`.
pub(super) async fn open<'s>(
    scope: &CallScope<'s>,
    name: &str,
    max_wait: Duration,
) -> Result<OpenSession<'s>, ToolError> {
    let alone = || ToolError::new(Outcome::BadArguments, "`session`: a call outside a conversation has no sessions");
    scope.programs.ok_or_else(alone)?.open(name, max_wait).await
}

/// Restores the variables of a session, if it has any.
///
/// # Errors
///
/// The session has another version of the interpreter, or the interpreter cannot restore it.
pub(super) async fn restore(
    kept: &OpenSession<'_>,
    interpreter: &str,
    session: &mut CodeSession<'_>,
) -> Result<(), ToolError> {
    let Some(before) = kept.before() else {
        // Before the program makes calls for nothing.
        let saved = session.save().await?;
        let none =
            |why: String| ToolError::new(Outcome::BadArguments, format!("`session`: {}", truncate(&why, MAX_MESSAGE)));
        return saved.map(drop).map_err(none);
    };
    let why = if before.interpreter != interpreter {
        "its variables were saved by another version of the interpreter".to_owned()
    } else {
        match session.restore(&before.state).await? {
            Ok(()) => return Ok(()),
            Err(why) => truncate(&why, MAX_MESSAGE),
        }
    };
    Err(cannot_continue(kept, &why))
}

/// Checks that a session is in a language, before its interpreter is compiled.
///
/// # Errors
///
/// The programs of the session are in another language.
pub(super) fn check_language(kept: &OpenSession<'_>, language: &str) -> Result<(), ToolError> {
    match kept.before() {
        Some(before) if before.language != language => {
            Err(cannot_continue(kept, &format!("its programs are in `{}`", before.language)))
        }
        _ => Ok(()),
    }
}

fn cannot_continue(kept: &OpenSession<'_>, why: &str) -> ToolError {
    let message =
        format!("the session `{}` cannot be continued: {why}; use another name for a new session", kept.name());
    ToolError::new(Outcome::Failed, message)
}

/// Saves the variables of a session after a program, and returns the note about it for the answer.
pub(super) async fn save(
    kept: OpenSession<'_>,
    (language, interpreter): (&str, &str),
    session: &mut CodeSession<'_>,
    end: &CodeEnd,
) -> Value {
    let (name, was_new) = (kept.name().to_owned(), kept.before().is_none());
    let saved = match end {
        CodeEnd::Failed(failure) if failure.kind != CodeFailureKind::Uncaught => {
            Err("the program did not end".to_owned())
        }
        _ => match session.save().await {
            Ok(Ok(state)) => {
                let (language, interpreter) = (language.to_owned(), interpreter.to_owned());
                kept.save(SavedProgram { language, interpreter, state: state.into() }).await
            }
            Ok(Err(why)) => Err(truncate(&why, MAX_MESSAGE)),
            Err(error) => Err(error.message),
        },
    };
    match saved {
        Ok(ended) if ended.is_empty() => json!({"name": name, "new": was_new}),
        Ok(ended) => json!({"name": name, "new": was_new, "ended": ended}),
        Err(why) => json!({"name": name, "not_saved": format!("{why}; the variables from before this program remain")}),
    }
}
