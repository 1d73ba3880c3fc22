//! EventKind a rich tool said beside the line that its model is told, on its way to the result; and what its caller should know.

use crate::call::{Form, Media, Part};
use crate::observe::EventKind;
use crate::pipeline::{secret, show};

use super::Ticket;

/// EventKind a rich tool said beside the line that its model is told.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Said {
    pub(in crate::pipeline) form: Form,
    pub(in crate::pipeline) media: Vec<Media>,
    pub(in crate::pipeline) shown: Vec<Part>,
    pub(in crate::pipeline) summary: Option<String>,
    pub(in crate::pipeline) transcript: Option<String>,
}

/// The most warnings of one call.
const MAX_WARNINGS: usize = 16;

impl Ticket<'_> {
    /// Notes the call that makes this one.
    pub(in crate::pipeline) fn within(&mut self, parent: Option<&str>) {
        self.note(|receipt| receipt.parent = parent.map(str::to_owned));
    }

    /// Notes what the caller should know, each once and no more than a few.
    pub(in crate::pipeline) fn warn(&mut self, warning: String) {
        self.note(|receipt| {
            if receipt.warnings.len() < MAX_WARNINGS && !receipt.warnings.contains(&warning) {
                receipt.warnings.push(warning);
            }
        });
    }

    /// EventKind the tool's record says that the call is about to do.
    pub(in crate::pipeline) fn recorded_preview(&self) -> Option<String> {
        show::preview(&self.tool?.interface.rendering, self.observable.as_ref()?)
    }

    /// Shows a part of a call that goes on.
    pub(in crate::pipeline) fn part(&mut self, part: Part) {
        self.parts += 1;
        let part = secret::masked_part(self.secrets, part);
        self.tell(EventKind::Part { number: self.parts, part: &part });
    }

    /// Keeps what a rich tool said beside its line.
    pub(in crate::pipeline) fn said(&mut self, said: Said) {
        self.said = said;
    }

    /// The line is another one than the tool's own: it is told as it is.
    pub(in crate::pipeline) fn told_otherwise(&mut self) {
        self.said.form = Form::Json;
    }

    /// Nothing of what the tool said is told.
    pub(in crate::pipeline) fn withheld(&mut self) {
        self.said = Said::default();
    }
}
