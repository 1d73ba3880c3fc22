//! All that a tool's record says about what goes into it and comes out of it, compiled once: what the model may send, what
//! the tool may get, which values go together, what nobody is shown, and what an answer looks like.

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::{Basis, Body, Tool, mask_arguments};

use super::values::Rules;
use super::{Arguments, bad};

/// The checks of one tool.
#[derive(Debug)]
pub(crate) struct Input {
    /// What the model may send; absent, what the tool may get.
    model: Option<Arguments>,
    runtime: Arguments,
    rules: Rules,
    sensitive: Vec<String>,
    output: Option<Arguments>,
}

/// Arguments that are right: as text and as value.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) text: String,
    pub(crate) value: Arc<Value>,
}

impl Input {
    /// Compiles the checks of a tool.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with a schema or a rule.
    pub(crate) fn compile(tool: &Tool) -> Result<Self, String> {
        let model = tool.model_check_schema();
        let output = &tool.interface.schemas.output_schema;
        // What the types of a function say of its answer, holds.
        let is_proven = matches!(tool.body, Body::Typed(_)) && output.basis != Basis::Declared;
        let output = output.value.as_ref().filter(|_| !is_proven);
        Ok(Self {
            model: model.as_ref().map(|schema| Arguments::compile(Some(schema))).transpose()?,
            runtime: Arguments::of_tool(tool)?,
            rules: Rules::new(&tool.interface.validation.value_validation.value),
            sensitive: tool.sensitive_names(),
            output: output
                .map(|schema| Arguments::compile(Some(schema)).map_err(|error| format!("output_{error}")))
                .transpose()?,
        })
    }

    /// Checks what a model sent, by its schema and then by the rules over its values.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`].
    pub(crate) fn check(&self, text: &str) -> Result<Checked, ToolError> {
        let checked = self.model.as_ref().unwrap_or(&self.runtime).check(text)?;
        self.rules.check(&checked.value).map_err(bad)?;
        Ok(checked)
    }

    /// Returns true where the arguments that the tool is about to get have to be checked again.
    pub(crate) fn rechecks(&self, changed: bool) -> bool {
        changed || self.model.is_some()
    }

    /// Checks the arguments that the tool is about to get, where they may differ from what the model sent.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`].
    pub(crate) fn recheck(&self, value: &Value) -> Result<(), ToolError> {
        self.runtime.check_value(value)?;
        self.rules.check(value).map_err(bad)
    }

    /// Whether a model could have sent these arguments itself.
    pub(crate) fn could_come_from_a_model(&self, value: &Value) -> bool {
        self.model.as_ref().is_none_or(|model| model.violations(value).is_none())
    }

    /// The arguments as they may be shown.
    pub(crate) fn observable(&self, value: &Value) -> Value {
        mask_arguments(value, &self.sensitive)
    }

    /// Whether answers have a schema.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadResult`].
    pub(crate) fn check_answer(&self, line: &str) -> Result<(), ToolError> {
        let Some(output) = &self.output else { return Ok(()) };
        let broken = |message: String| ToolError::new(Outcome::BadResult, message);
        let value = super::parse(line).map_err(|error| broken(format!("tool answered with bad JSON: {error}")))?;
        match output.violations(&value) {
            Some(violations) => Err(broken(format!("tool's answer breaks its own output schema: {violations}"))),
            None => Ok(()),
        }
    }
}
