//! Compiled checks of a tool: arguments from the model, arguments for the tool, rules over values, sensitive arguments,
//! and the result's schema.

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::{Basis, Body, Tool, mask_arguments};

use super::values::Rules;
use super::{CompiledSchema, bad_arguments};

/// Compiled checks of one tool.
#[derive(Debug)]
pub(crate) struct ToolValidator {
    /// Schema of the model's arguments, if it differs from `runtime`.
    model: Option<CompiledSchema>,
    runtime: CompiledSchema,
    rules: Rules,
    sensitive: Vec<String>,
    output: Option<CompiledSchema>,
}

/// Valid arguments, as text and as a value.
#[derive(Debug, Clone)]
pub(crate) struct CheckedArguments {
    pub(crate) text: String,
    pub(crate) value: Arc<Value>,
}

impl ToolValidator {
    /// Compiles the checks of a tool.
    ///
    /// # Errors
    ///
    /// A message that describes the error in a schema.
    pub(crate) fn compile(tool: &Tool) -> Result<Self, String> {
        let model = tool.model_check_schema();
        let output = &tool.interface.schemas.output_schema;
        // The types of a function guarantee a schema that they generate, and so does the form of a command's output.
        let is_guaranteed =
            matches!(tool.body, Body::Typed(_) | Body::Command { .. }) && output.basis != Basis::Declared;
        let output = output.value.as_ref().filter(|_| !is_guaranteed);
        Ok(Self {
            model: model.as_ref().map(|schema| CompiledSchema::compile(Some(schema))).transpose()?,
            runtime: CompiledSchema::of_parameters(tool)?,
            rules: Rules::new(&tool.interface.validation.value_validation.value),
            sensitive: tool.sensitive_names(),
            output: output
                .map(|schema| CompiledSchema::compile(Some(schema)).map_err(|error| format!("output_{error}")))
                .transpose()?,
        })
    }

    /// Checks the model's arguments, first by the schema and then by the rules over values.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`].
    pub(crate) fn check(&self, text: &str) -> Result<CheckedArguments, ToolError> {
        let checked = self.model.as_ref().unwrap_or(&self.runtime).check(text)?;
        self.rules.check(&checked.value).map_err(bad_arguments)?;
        Ok(checked)
    }

    /// Returns `true` if the arguments for the tool require another check; `changed` if they differ from the model's.
    pub(crate) fn requires_recheck(&self, changed: bool) -> bool {
        changed || self.model.is_some()
    }

    /// Checks the arguments for the tool.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`].
    pub(crate) fn recheck(&self, value: &Value) -> Result<(), ToolError> {
        self.runtime.check_value(value)?;
        self.rules.check(value).map_err(bad_arguments)
    }

    /// Returns `true` if these arguments are valid as a model's arguments.
    pub(crate) fn accepts_from_model(&self, value: &Value) -> bool {
        self.model.as_ref().is_none_or(|model| model.violations(value).is_none())
    }

    /// Returns the names of sensitive arguments; see [`Tool::sensitive_names`].
    pub(crate) fn sensitive_names(&self) -> &[String] {
        &self.sensitive
    }

    /// Returns the arguments with sensitive values masked.
    pub(crate) fn mask_sensitive(&self, value: &Value) -> Value {
        mask_arguments(value, &self.sensitive)
    }

    /// Returns `true` if results have a schema.
    pub(crate) fn has_output_schema(&self) -> bool {
        self.output.is_some()
    }

    /// Checks a result.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadResult`].
    pub(crate) fn check_result(&self, line: &str) -> Result<(), ToolError> {
        let Some(output) = &self.output else { return Ok(()) };
        let bad_result = |message: String| ToolError::new(Outcome::BadResult, message);
        let value = super::parse(line).map_err(|error| bad_result(format!("tool answered with bad JSON: {error}")))?;
        match output.violations(&value) {
            Some(violations) => Err(bad_result(format!("tool's answer breaks its own output schema: {violations}"))),
            None => Ok(()),
        }
    }
}
