//! Command lines that an embedder gives to tools without a definition.

use std::sync::Arc;

use toolcrib_foundation::text::shown;

use crate::error::Error;
use crate::tool::{Body, CommandLine, Tool};

use super::builder::Builder;

impl Builder {
    /// Sets the command line of a tool without a definition: a component that is a command, so that nothing else states its
    /// arguments. Hooks and rules find only `argv` and `stdin` in its calls.
    #[must_use]
    pub fn command_line(mut self, tool: impl Into<String>, line: CommandLine) -> Self {
        self.command_lines.insert(tool.into(), Arc::new(line));
        self
    }

    /// Applies the command lines to their tools.
    ///
    /// # Errors
    ///
    /// A tool is missing or states its own arguments, or a rule is about arguments that the command line hides.
    pub(super) fn apply_command_lines(&self, tools: &mut [Tool]) -> Result<(), Error> {
        let is_known = |name: &str| tools.iter().any(|tool| tool.name == name);
        if let Some(name) = self.command_lines.keys().find(|name| !is_known(name)) {
            let reason = "no tool has this name".to_owned();
            return Err(Error::Permission { permission: format!("the command line of `{}`", shown(name)), reason });
        }
        tools.iter_mut().try_for_each(|tool| self.apply_command_line(tool))
    }

    fn apply_command_line(&self, tool: &mut Tool) -> Result<(), Error> {
        let Some(line) = self.command_lines.get(&tool.name) else { return Ok(()) };
        let refused = |reason: String| {
            Err(Error::Permission { permission: format!("the command line of `{}`", tool.name), reason })
        };
        if let Some(unusable) = &tool.unusable {
            return Err(unusable.fault.clone());
        }
        // A definition is text.
        let is_defined = tool.origin.text.is_some() || tool.parameters.is_some();
        if is_defined || !matches!(tool.body, Body::Command { .. }) {
            return refused("the tool states its arguments itself".to_owned());
        }
        if let Some(rule) = self.policy.rules().over_hidden_arguments(tool) {
            let pattern = rule.pattern().as_str();
            return refused(format!(
                "the rule `{pattern}` is about arguments that it hides; rules see `argv` and `stdin`"
            ));
        }
        tool.parameters = line.schema();
        if let Some(schema) = line.output.and_then(|form| form.schema()) {
            tool.interface.schemas.output_schema.infer(Some(schema));
        }
        if let Body::Command { command_line, .. } = &mut tool.body {
            *command_line = Some(line.clone());
        }
        Ok(())
    }
}
