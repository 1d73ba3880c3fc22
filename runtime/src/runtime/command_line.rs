//! Command lines that an embedder gives to tools without a definition.

use std::sync::Arc;

use crate::error::Error;
use crate::tool::{Body, CommandLine, Tool};

use super::builder::Builder;

impl Builder {
    /// Lets the calls of a tool pass a command line, and their output have its form. The tool is a component without a definition
    /// that is a command, so nothing else states its arguments.
    #[must_use]
    pub fn command_line(mut self, tool: impl Into<String>, line: CommandLine) -> Self {
        self.command_lines.insert(tool.into(), Arc::new(line));
        self
    }

    /// Applies the command line of a tool, if it has one.
    ///
    /// # Errors
    ///
    /// The tool states its own arguments, or a rule is about arguments that the command line hides.
    pub(super) fn apply_command_line(&self, tool: &mut Tool) -> Result<(), Error> {
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
