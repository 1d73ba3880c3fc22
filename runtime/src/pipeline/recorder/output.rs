//! Output of a tool beside the line for the model: media, parts and lines for people, and warnings for the caller.

use serde_json::Value;

use crate::call::{Decision, Form, Media, Part};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::policy::Secrets;
use crate::sandbox::MAX_RECORDED;

use super::{CallRecorder, redact, rendering};

/// Output of a tool beside the line for the model.
#[derive(Debug, Default)]
pub(crate) struct ToolOutput {
    /// Meaning of the line.
    pub(crate) form: Form,
    /// Media of the answer.
    pub(crate) media: Vec<Media>,
    /// Parts shown to people.
    pub(crate) shown: Vec<Part>,
    /// One line for people, in the tool's own words.
    pub(crate) summary: Option<String>,
    /// Search text for transcripts, in the tool's own words.
    pub(crate) transcript: Option<String>,
}

impl ToolOutput {
    /// Masks secrets in the output.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`] for media with a secret in their bytes.
    pub(crate) fn redact(&mut self, secrets: Option<&Secrets>) -> Result<(), ToolError> {
        let Some(scanner) = secrets.and_then(Secrets::scanner) else { return Ok(()) };
        let shown = std::mem::take(&mut self.shown);
        self.shown = shown.into_iter().map(|part| redact::masked_by(&scanner, part)).collect();
        for media in &mut self.media {
            media.name = media.name.take().filter(|name| scanner.check(name.as_bytes()).is_ok());
        }
        match self.media.iter().find_map(|media| scanner.check(&media.data).err()) {
            None => Ok(()),
            Some(leak) => {
                self.media.clear();
                let message = format!("the answer held the secret `{}`, so it is withheld", leak.0);
                Err(ToolError::new(Outcome::Denied, message))
            }
        }
    }
}

impl CallRecorder<'_> {
    /// Records the invocation of the call that makes this one.
    pub(crate) fn set_parent(&mut self, parent: Option<&str>) {
        self.note(|receipt| receipt.parent = parent.map(str::to_owned));
    }

    /// Removes the grant from the record: the call runs elsewhere, with another one.
    pub(crate) fn forget_grant(&mut self) {
        self.note(|receipt| (receipt.env_keys, receipt.granted, receipt.denied) = Default::default());
    }

    /// Records the worker that runs the call.
    pub(crate) fn set_worker(&mut self, worker: &str) {
        self.note(|receipt| receipt.worker = Some(worker.to_owned()));
    }

    /// Records a warning for the caller, each once and at most [`MAX_RECORDED`].
    pub(crate) fn warn(&mut self, warning: String) {
        self.note(|receipt| {
            if receipt.warnings.len() < MAX_RECORDED && !receipt.warnings.contains(&warning) {
                receipt.warnings.push(warning);
            }
        });
    }

    /// Returns the preview of the call that the tool's definition provides, if any.
    pub(crate) fn rendered_preview(&self) -> Option<String> {
        rendering::preview(&self.tool?.interface.rendering, self.observable.as_ref()?)
    }

    /// Shows a part of a running call, with secrets masked.
    pub(crate) fn show_part(&mut self, part: Part) {
        self.parts += 1;
        let part = redact::masked_part(self.secrets, part);
        self.emit(EventKind::Part { number: self.parts, part: &part });
    }

    /// Keeps the output of the tool for the result.
    pub(crate) fn set_output(&mut self, output: ToolOutput) {
        self.output = output;
    }

    /// Marks the line as replaced by the host: it is plain JSON.
    pub(crate) fn reset_form(&mut self) {
        self.output.form = Form::Json;
    }

    /// Records the rule that withholds the answer from the model, and drops the output beside it.
    pub(crate) fn set_withheld(&mut self, rule: String) {
        self.withhold_output();
        self.note(|receipt| receipt.withheld = Some(rule));
    }

    /// Returns the decision about the call, if one was made.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.receipt.as_ref()?.decision.as_ref()
    }

    /// Returns `true` if a rule withheld the answer.
    pub(crate) fn is_withheld(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| receipt.withheld.is_some())
    }

    /// Renders a call with these arguments in one line, as the tool's definition has it.
    pub(crate) fn summary(&self, arguments: &Value) -> Option<String> {
        rendering::summary(&self.tool?.interface.rendering, arguments)
    }

    /// Records the stored answers that were put into the arguments.
    pub(crate) fn set_used_results(&mut self, references: impl Iterator<Item = String>) {
        self.note(|receipt| receipt.used_results = references.collect());
    }

    /// Drops all output of the tool beside the line.
    pub(crate) fn withhold_output(&mut self) {
        self.output = ToolOutput::default();
    }
}
