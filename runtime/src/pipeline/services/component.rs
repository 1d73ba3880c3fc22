//! Services for components alone: parts shown to the user, model completions, and calls to other tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::mpsc;

use crate::call::{Part, ToolCall, TraceContext};
use crate::delegate::MAX_DEPTH;
use crate::model::{
    CompletionRequest, DEFAULT_TOKENS, MAX_COMPLETION_LEN, MAX_COMPLETIONS, MAX_PROMPT_LEN, MAX_TOKENS,
};
use crate::pipeline::recorder::{CallRecorder, redact};
use crate::pipeline::state::{CallScope, CallTree, Parent};
use crate::sandbox::{ModelAnswer, ModelQuestion, Program, Usage};
use crate::tool::Service;

use super::{CallServices, NOT_GRANTED};

/// Maximum number of parts that one call shows.
const MAX_PARTS: u64 = 1000;
/// Maximum bytes of all parts that one call shows.
const MAX_PART_BYTES: usize = 1 << 20;
/// Maximum number of parts that wait to be shown.
pub(super) const WAITING_PARTS: usize = 64;
/// Maximum number of calls to other tools below one call.
const MAX_CALLS: u64 = 64;

/// State for a component.
pub(super) struct Component {
    /// Digest of the component: its tools share cached values.
    digest: String,
    /// The caller's identifier of the call.
    call_id: String,
    /// The host's identifier of the call.
    invocation: String,
    /// Position of the call in the calling program's trace.
    trace: Option<TraceContext>,
    tree: Arc<CallTree>,
    parts: mpsc::Sender<Part>,
    /// Remaining bytes of parts.
    remaining_bytes: AtomicUsize,
}

impl Component {
    pub(super) fn new(
        program: &Program,
        scope: &CallScope<'_>,
        recorder: &CallRecorder<'_>,
        parts: mpsc::Sender<Part>,
    ) -> Self {
        Self {
            digest: program.digest.clone(),
            call_id: recorder.call_id().to_owned(),
            invocation: recorder.invocation().to_owned(),
            trace: recorder.trace(),
            tree: scope.parent.map_or_else(Arc::default, |parent| parent.tree.clone()),
            parts,
            remaining_bytes: AtomicUsize::new(MAX_PART_BYTES),
        }
    }

    /// Returns the key of a cached value, which the component's tools share.
    pub(super) fn cache_key(&self, key: &str) -> String {
        format!("{}\0{key}", self.digest)
    }

    /// Shows a part, or counts it as dropped if there are too many.
    pub(super) async fn show(&self, usage: &Usage, part: Part, bytes: usize) {
        let fits = usage.whole().parts.load(Relaxed) < MAX_PARTS
            && self.remaining_bytes.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok();
        // A guest that shows parts faster than they are read waits here.
        match fits && self.parts.send(part).await.is_ok() {
            true => usage.whole().parts.fetch_add(1, Relaxed),
            false => usage.whole().dropped_parts.fetch_add(1, Relaxed),
        };
    }
}

impl CallServices {
    /// Requests a completion of the host's model.
    pub(super) async fn ask_model(
        &self,
        component: &Component,
        question: ModelQuestion,
    ) -> Result<ModelAnswer, String> {
        self.grant.rights().check(Service::Model, None).map_err(|denial| self.refused(denial, NOT_GRANTED))?;
        let ModelQuestion { system, prompt, max_tokens } = question;
        let bytes = prompt.len() + system.as_ref().map_or(0, String::len);
        if bytes > MAX_PROMPT_LEN {
            return Err(format!("the question has {bytes} bytes, more than the {MAX_PROMPT_LEN} allowed"));
        }
        self.check_model()?;
        let model = self.pipeline.model.as_ref().ok_or("no model is configured")?;
        let usage = self.usage.whole();
        let count = &component.tree.completions;
        let count = count.fetch_update(Relaxed, Relaxed, |count| (count < MAX_COMPLETIONS).then_some(count + 1));
        count.map_err(|_| {
            format!("this call and its nested calls have already asked the model {MAX_COMPLETIONS} times, the maximum")
        })?;
        usage.completions.fetch_add(1, Relaxed);
        // Secrets are masked for the model as everywhere else.
        let mask = |text: String| redact::masked(self.pipeline.secrets.as_ref(), text);
        let (system, prompt) = (system.map(mask), mask(prompt));
        let max_tokens = max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(1, MAX_TOKENS);
        let request = CompletionRequest { system, prompt, max_tokens };
        let completion = model.complete(request).await.map_err(|error| error.to_string())?;
        usage.tokens.fetch_add(completion.tokens, Relaxed);
        if completion.text.len() > MAX_COMPLETION_LEN {
            return Err(format!("the model answered with more than {MAX_COMPLETION_LEN} bytes"));
        }
        Ok(ModelAnswer { text: completion.text, tokens: completion.tokens })
    }

    /// Calls another tool through all stages of the pipeline.
    pub(super) async fn call_tool(
        &self,
        component: &Component,
        name: String,
        arguments: String,
    ) -> Result<String, String> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(format!("calls are already nested {MAX_DEPTH} deep, the maximum"));
        }
        let calls = &component.tree.calls;
        let counted = calls.fetch_update(Relaxed, Relaxed, |calls| (calls < MAX_CALLS).then_some(calls + 1));
        counted.map_err(|_| {
            format!("this call and its nested calls have already called {MAX_CALLS} tools, the maximum")
        })?;
        let number = self.usage.whole().calls.fetch_add(1, Relaxed) + 1;
        let mut call = ToolCall::new(format!("{}/{number}", component.call_id), name, arguments);
        call.trace = component.trace;
        // The pipeline resolves the tool, and then checks that this tool may call it.
        let Component { invocation, tree, .. } = component;
        let parent = Parent { invocation, grant: Some(&self.grant), usage: &self.usage, tree };
        let scope = CallScope { depth, parent: Some(parent), ..CallScope::alone(&self.memory) };
        let result = self.pipeline.call(call, scope).await;
        let content = result.content().into_owned();
        match &result.outcome {
            Ok(_) => Ok(content),
            // An error without an object of its own is its message alone.
            Err(error) if error.json.is_none() => Err(error.message.clone()),
            Err(_) => Err(content),
        }
    }
}
