//! Checks the scripts of tools and hooks without running them.

use crate::error::Error;
use crate::pipeline::prepared::ScriptHook;
use crate::pipeline::state::Pipeline;
use crate::sandbox::{EntryPoint, ScriptProblem, ScriptText};
use crate::source::{Diagnostic, Severity};
use crate::tool::{Body, Limits, Place, Script};

/// Returns all errors that the interpreter finds in scripts without running them.
///
/// # Errors
///
/// [`Error::Component`] if the interpreter cannot run.
pub(crate) async fn check_scripts(pipeline: &Pipeline) -> Result<Vec<Diagnostic>, Error> {
    let tools = pipeline.registry.tools().iter().zip(&pipeline.prepared);
    let tools = tools.map(|(tool, prepared)| (tool, prepared, EntryPoint::Run, None));
    let hooks = pipeline.hooks.of_sources().map(|ScriptHook { definition, prepared, .. }| {
        (&definition.tool, prepared, EntryPoint::Handle, definition.when.expression.as_deref())
    });
    let mut problems = Vec::new();
    for (tool, prepared, entry, when) in tools.chain(hooks) {
        let Body::Script(script) = &tool.body else { continue };
        let path = &tool.origin.path;
        let broken = |reason: String| Error::Component { path: path.to_path_buf(), reason };
        let interpreter = pipeline.interpreters.interpreter(prepared).await;
        let interpreter = interpreter.map_err(|error| broken(error.message))?;
        let text = ScriptText { name: &tool.name, source: &script.source };
        let limits = Limits::default();
        let wrong = pipeline.sandbox.check_script(&interpreter, text, entry, when, &limits).await;
        let wrong = wrong.unwrap_or_else(|error| vec![ScriptProblem::anywhere(error.message)]);
        problems.extend(wrong.into_iter().map(|wrong| Diagnostic {
            severity: Severity::Error,
            path: path.to_path_buf(),
            place: place(&tool.name, entry, &wrong, script),
            message: message(&tool.name, entry, &wrong, script),
        }));
    }
    Ok(problems)
}

/// Returns the position of an error in the file. A missing entry has the position of the script.
fn place(name: &str, entry: EntryPoint, wrong: &ScriptProblem, script: &Script) -> Option<Place> {
    match wrong.place() {
        Some(place) => script.in_file(place),
        None => script.place.filter(|_| wrong.message.starts_with(&owner(name, entry))),
    }
}

/// Returns the name of a script in messages.
fn owner(name: &str, entry: EntryPoint) -> String {
    let owner = if entry == EntryPoint::Run { "tool" } else { "hook" };
    format!("{owner} script {name:?}")
}

/// Returns the message of an error, with the tool or hook, and with the location in the script if the file has none.
fn message(name: &str, entry: EntryPoint, wrong: &ScriptProblem, script: &Script) -> String {
    let begins = owner(name, entry);
    match wrong.place() {
        // The format's own messages name the script themselves.
        _ if wrong.message.starts_with(&begins) => wrong.message.clone(),
        Some(place) if script.place.is_none() => {
            format!("{begins}: line {}, column {}: {}", place.line, place.column, wrong.message)
        }
        _ => format!("{begins}: {}", wrong.message),
    }
}
