//! Runs calls of remote tools: the embedder speaks the protocol, through the network gate of the call.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout_at;

use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::{CallRecorder, ToolOutput};
use crate::pipeline::stage::{self, ModelContent, display, model_content, tool_error};
use crate::pipeline::state::{CallScope, Execution, Pipeline, unless_cancelled};
use crate::policy::Credentials;
use crate::remote::{RemoteAnswer, RemoteCall, RemoteContent, RemoteError, RemoteTools};
use crate::sandbox::{GuestFailure, GuestFailureKind, GuestLink, GuestMedia, GuestPart};
use crate::tool::Remote;

use super::epilogue::finish;
use super::parts::show_while;
use super::{Answer, RunInput};

/// Runs a call. With a fresh token it is made once more after the server has refused one, so that nothing was done.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    remote: &Remote,
    RunInput { checked, credentials, limits }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    if recorder.usage.holds_requests() {
        let why = "a rule holds back the requests of this call until it ends, and no server answers a call that it did not get; \
                   a rule without `at the end` asks before the call";
        return Err(ToolError::new(Outcome::Denied, why));
    }
    let Some(tools) = pipeline.remote.clone() else {
        return Err(ToolError::new(Outcome::BadComponent, "no client for remote servers is configured"));
    };
    let until = Instant::now() + limits.deadline;
    let mut attempt = Attempt { tools: &*tools, remote, arguments: &checked.value, until };
    let mut ended = attempt.make((pipeline, execution, credentials, limits), scope, recorder).await?;
    if let (Err(RemoteError::Unauthorized(_)), Some(refused)) = (&ended, credentials)
        && let Some(fresh) = stage::renewed(pipeline, execution.prepared, refused, scope, recorder).await?
    {
        ended = attempt.make((pipeline, execution, Some(&fresh), limits), scope, recorder).await?;
    }
    let ended = ended.map_err(|error| match error {
        RemoteError::Unauthorized(error) | RemoteError::Failed(error) => error,
    });
    let counted = ended.and_then(|answer| {
        recorder.usage.count_answer(bytes(&answer), limits.stdout)?;
        Ok(answer)
    });
    let answer = finish(counted, "", scope, recorder, |answer, _| bytes(answer))?;
    map(pipeline, answer, recorder)
}

/// One attempt of a call.
struct Attempt<'a> {
    tools: &'a dyn RemoteTools,
    remote: &'a Remote,
    arguments: &'a serde_json::Value,
    until: Instant,
}

impl Attempt<'_> {
    /// Makes the call, within its deadline.
    ///
    /// # Errors
    ///
    /// [`Outcome::Cancelled`]; the inner error is that of the call.
    async fn make(
        &mut self,
        (pipeline, execution, credentials, limits): (
            &Pipeline,
            &Execution<'_>,
            Option<&Arc<Credentials>>,
            &crate::tool::Limits,
        ),
        scope: &CallScope<'_>,
        recorder: &mut CallRecorder<'_>,
    ) -> Result<Result<RemoteAnswer, RemoteError>, ToolError> {
        let gate = pipeline.sandbox.gate(execution.grant.network(), credentials, limits, &recorder.usage);
        let conversation = (!scope.memory.is_open()).then(|| scope.memory.session());
        let (call, mut progress) = RemoteCall::new(self.remote, self.arguments, conversation);
        let calling = pin!(timeout_at(self.until.into(), self.tools.call(call, &gate)));
        let ended = show_while(&mut progress, recorder, unless_cancelled(scope.turn, calling)).await?;
        let late = || ToolError::new(Outcome::Deadline, "the server did not answer the call in time");
        Ok(ended.unwrap_or_else(|_| Err(RemoteError::Failed(late()))))
    }
}

/// Returns the size of an answer, as it counts against the output limit.
fn bytes(answer: &RemoteAnswer) -> usize {
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let part = |part: &RemoteContent| match part {
        RemoteContent::Text(text) => text.len(),
        RemoteContent::Media { mime_type, name, data } => mime_type.len() + of(name) + data.len(),
        RemoteContent::Link { uri, name, mime_type } => uri.len() + of(name) + of(mime_type),
    };
    answer.content.iter().map(part).fold(of(&answer.structured), usize::saturating_add)
}

/// Maps an answer, and keeps its output for people with the recorder.
fn map(pipeline: &Pipeline, answer: RemoteAnswer, recorder: &mut CallRecorder<'_>) -> Result<Answer, ToolError> {
    let RemoteAnswer { content, structured, is_error } = answer;
    let mut output = ToolOutput::default();
    let content: Vec<GuestPart> = content.into_iter().map(guest_part).collect();
    let answer = match (is_error, structured) {
        (true, _) => {
            let line = model_content(content)?.line;
            let message = line.map(|line| serde_json::from_str::<String>(&line).unwrap_or(line));
            let message = message.unwrap_or_else(|| "the tool failed without a reason".to_owned());
            let failure = GuestFailure { kind: GuestFailureKind::Failed, message, details: None };
            Err(tool_error(failure, None))
        }
        (false, Some(json)) => {
            // The texts repeat the structured answer in other words; people see them.
            output.shown = display(content.clone())?;
            output.media = model_content(content)?.media;
            Ok(model_content(vec![GuestPart::Json(json)])?.line)
        }
        (false, None) => {
            let ModelContent { line, form, media } = model_content(content)?;
            (output.form, output.media) = (form, media);
            Ok(line)
        }
    };
    output.redact(pipeline.secrets.as_ref())?;
    recorder.set_output(output);
    Ok(answer)
}

fn guest_part(part: RemoteContent) -> GuestPart {
    match part {
        RemoteContent::Text(text) => GuestPart::Text(text),
        RemoteContent::Media { mime_type, name, data } => GuestPart::Media(GuestMedia { mime_type, name, data }),
        RemoteContent::Link { uri, name, mime_type } => GuestPart::Link(GuestLink { uri, name, mime_type }),
    }
}
