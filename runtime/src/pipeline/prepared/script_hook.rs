//! A script hook with its prepared state, and the conditions that are tested without running it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::policy::{Command, HookAccess, canonical_value, is_null, is_visible_in_command_line, matches_number, means};
use crate::schema::{self, Clock, step, with_clock};
use crate::tool::{Body, Glob, HookPoint, ScriptedHook, Tool};

use super::PreparedTool;
use super::compute::{MAX_SIDE_TIME, aside};

/// A script hook with its prepared state.
pub(crate) struct ScriptHook {
    pub(crate) definition: ScriptedHook,
    pub(crate) prepared: PreparedTool,
    /// `true` if the hook handles the tools of the host and events without a tool.
    handles_run: bool,
}

impl ScriptHook {
    /// Creates a script hook.
    pub(crate) fn new(definition: ScriptedHook, prepared: PreparedTool, access: &HookAccess) -> Self {
        let handles_run = access.may_handle_run(&definition);
        Self { definition, prepared, handles_run }
    }

    /// Returns the name of the hook.
    pub(crate) fn name(&self) -> &str {
        &self.definition.tool.name
    }

    /// Returns the file that defines the hook.
    pub(crate) fn path(&self) -> &Path {
        &self.definition.tool.origin.path
    }

    /// Returns the digest of the script.
    pub(crate) fn digest(&self) -> Option<&str> {
        match &self.definition.tool.body {
            Body::Script(script) => Some(&script.digest),
            _ => None,
        }
    }

    /// Returns `true` if the hook handles an event, for some tool if it is a call event.
    pub(crate) fn handles(&self, event: &HookPoint) -> bool {
        let of_calls = matches!(event, HookPoint::ToolPre | HookPoint::ToolPost);
        self.definition.event == *event && (of_calls || self.handles_run)
    }

    /// Returns `true` if the hook is for this event of this tool, or for the run's event, whatever the arguments. A
    /// tool without a source is one of the host.
    pub(crate) fn is_for(&self, event: &HookPoint, tool: Option<&Tool>) -> bool {
        let reaches = match tool.filter(|tool| tool.origin.source.is_some()) {
            Some(tool) => self.definition.reaches(tool),
            None => self.handles_run,
        };
        self.definition.event == *event && reaches && self.definition.matches(tool)
    }

    /// Returns `true` if the hook judges a command that a script runs. Conditions on arguments count as met for an
    /// opaque command, because no condition can see its arguments.
    pub(crate) async fn applies_to_command(&self, tool: &Tool, command: &Command) -> bool {
        (command.is_opaque && self.is_for(&HookPoint::ToolPre, Some(tool)))
            || self.applies(&HookPoint::ToolPre, Some(tool), &command.arguments).await
    }

    /// Returns `true` if the hook judges this event of this tool, or of the run, as far as its scope and its conditions tell
    /// without running it, or if the arguments are too large to test them in time.
    pub(crate) async fn applies(&self, event: &HookPoint, tool: Option<&Tool>, arguments: &Arc<Value>) -> bool {
        if !self.is_for(event, tool) {
            return false;
        }
        let all = self.definition.when.arguments.as_slice();
        // A condition on an argument that is hidden in a command line counts as met.
        let globs: Cow<'_, [_]> = match tool.is_some_and(Tool::hides_arguments) {
            true => all.iter().filter(|(name, _)| is_visible_in_command_line(name)).cloned().collect(),
            false => all.into(),
        };
        if globs.is_empty() {
            return true;
        }
        let schema = tool.and_then(|tool| tool.parameters.as_ref());
        let inline = || matches(&globs, schema, arguments, schema::MAX_INLINE_BYTES);
        if let Some(matched) = with_clock(&Clock::inline(), inline).ok().flatten() {
            return matched;
        }
        let (globs, schema, arguments) = (globs.into_owned(), schema.cloned(), arguments.clone());
        let job =
            aside(Instant::now() + MAX_SIDE_TIME, move || matches(&globs, schema.as_ref(), &arguments, usize::MAX));
        job.await.flatten().unwrap_or(true)
    }
}

/// Matches the texts of arguments against patterns; `None` if one has more than `max` bytes. Numbers, arrays and objects are
/// compared as by rules, and a missing argument by its default, else as `null`.
fn matches(globs: &[(String, Glob)], schema: Option<&Value>, arguments: &Value, max: usize) -> Option<bool> {
    for (name, glob) in globs {
        let default = || schema?.get("properties")?.get(name)?.get("default");
        let is_match = match arguments.get(name).or_else(default) {
            None => is_null(glob),
            Some(Value::Number(number)) => matches_number(glob, number),
            Some(Value::String(text)) if text.len() > max => return None,
            Some(Value::String(text)) => step(text.len()) && glob.is_match(text),
            Some(value) => {
                let text = json_text(value, max)?;
                let means = || {
                    let canonical = canonical_value(value).map(|value| value.to_string());
                    canonical.is_some_and(|text| step(text.len()) && (glob.is_match(&text) || means(glob, &text)))
                };
                step(text.len()) && glob.is_match(&text) || means()
            }
        };
        if !is_match {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the JSON text of a value; `None` if it has more than `max` bytes.
fn json_text(value: &Value, max: usize) -> Option<String> {
    /// A writer that accepts a bounded number of bytes and then fails.
    struct Bounded(Vec<u8>, usize);

    impl Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 || !step(bytes.len()) {
                return Ok(0);
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut bounded = Bounded(Vec::new(), max);
    serde_json::to_writer(&mut bounded, value).ok()?;
    String::from_utf8(bounded.0).ok()
}
