//! Who answers a rich tool or a function while it runs. Each question is held against the tool's grant first, and what is refused stands
//! in the record of its call. A call of another tool goes the way of every call, one level deeper.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::call::{Denial, Part, ToolCall};
use crate::delegate::MAX_DEPTH;
use crate::model::{CompletionRequest, MAX_ANSWER_LEN, MAX_QUESTION_LEN, MAX_QUESTIONS, MAX_TOKENS, USUAL_TOKENS};
use crate::policy::Grant;
use crate::sandbox::{ModelAnswer, ModelQuestion, Piece, Program, Services, Usage};
use crate::tool::{SecretRequest, Service};

use super::memory::Cache;
use super::ready::Ready;
use super::ticket::Ticket;
use super::{Context, Memory, Parent, Pipeline, Together, parts, secret};

/// The most parts of one call that are shown, the most bytes of all of them, and how many wait to be.
const MAX_PARTS: u64 = 1000;
const MAX_PART_BYTES: usize = 1 << 20;
const WAITING_PARTS: usize = 64;
/// The most calls of other tools that one call makes.
const MAX_CALLS: u64 = 64;

/// Answers the questions of one call.
struct Attendant {
    pipeline: Arc<Pipeline>,
    memory: Arc<Memory>,
    grant: Arc<Grant>,
    usage: Arc<Usage>,
    /// The digest of the component, whose tools share what they keep.
    space: String,
    /// The call's identifiers, the caller's and the host's.
    call_id: String,
    invocation: String,
    depth: u32,
    together: Arc<Together>,
    parts: mpsc::Sender<Part>,
    room: AtomicUsize,
    /// EventKind the tool keeps where there is no run that could.
    cache: Cache,
}

impl Pipeline {
    /// Who answers the questions of a call, and where the parts come that it shows.
    pub(super) fn attendant(
        self: &Arc<Self>,
        ready: &Ready,
        program: &Program,
        context: &Context<'_>,
        ticket: &Ticket<'_>,
    ) -> (Arc<dyn Services>, mpsc::Receiver<Part>) {
        let (parts, receiver) = mpsc::channel(WAITING_PARTS);
        let attendant = Attendant {
            pipeline: self.clone(),
            memory: context.memory.clone(),
            grant: ready.grant.clone(),
            usage: ticket.usage.clone(),
            space: program.digest.clone(),
            call_id: ticket.call_id().to_owned(),
            invocation: ticket.invocation().to_owned(),
            depth: context.depth,
            together: context.parent.map_or_else(Arc::default, |parent| parent.together.clone()),
            parts,
            room: AtomicUsize::new(MAX_PART_BYTES),
            cache: Cache::default(),
        };
        (Arc::new(attendant), receiver)
    }
}

impl Attendant {
    fn cache(&self) -> &Cache {
        if self.memory.is_open() { &self.cache } else { &self.memory.cache }
    }

    fn key(&self, key: &str) -> String {
        format!("{}\0{key}", self.space)
    }

    fn refused(&self, denial: Denial) -> String {
        let hint = denial.flag.as_ref().map(|flag| format!("; `{flag}` would allow it")).unwrap_or_default();
        self.usage.refused(denial);
        format!("permission denied by the grant{hint}")
    }

    async fn show_part(&self, part: Part, bytes: usize) {
        let fits = self.usage.whole().parts.load(Relaxed) < MAX_PARTS
            && self.room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(bytes)).is_ok();
        // Whoever shows parts faster than they are told waits here.
        match fits && self.parts.send(part).await.is_ok() {
            true => self.usage.whole().parts.fetch_add(1, Relaxed),
            false => self.usage.whole().dropped_parts.fetch_add(1, Relaxed),
        };
    }

    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, String> {
        self.grant.rights().check(Service::Model, None).map_err(|denial| self.refused(denial))?;
        let ModelQuestion { system, prompt, max_tokens } = question;
        let bytes = prompt.len() + system.as_ref().map_or(0, String::len);
        if bytes > MAX_QUESTION_LEN {
            return Err(format!("the question has {bytes} bytes, more than the {MAX_QUESTION_LEN} allowed"));
        }
        let model = self.pipeline.model.as_ref().ok_or("no model is set up here")?;
        let usage = self.usage.whole();
        let asked = &self.together.completions;
        let asked = asked.fetch_update(Relaxed, Relaxed, |asked| (asked < MAX_QUESTIONS).then_some(asked + 1));
        asked.map_err(|_| {
            format!("the call, with all that it calls, has asked the model {MAX_QUESTIONS} times, and asks no more")
        })?;
        usage.completions.fetch_add(1, Relaxed);
        // A secret that is masked everywhere else goes to no model either.
        let mask = |text: String| secret::masked(self.pipeline.secrets.as_ref(), text);
        let (system, prompt) = (system.map(mask), mask(prompt));
        let max_tokens = max_tokens.unwrap_or(USUAL_TOKENS).clamp(1, MAX_TOKENS);
        let said = model.complete(CompletionRequest { system, prompt, max_tokens }).await?;
        usage.tokens.fetch_add(said.tokens, Relaxed);
        if said.text.len() > MAX_ANSWER_LEN {
            return Err(format!("the model answered with more than {MAX_ANSWER_LEN} bytes"));
        }
        Ok(ModelAnswer { text: said.text, tokens: said.tokens })
    }

    async fn call_tool(&self, name: String, arguments: String) -> Result<String, String> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(format!("{MAX_DEPTH} tools have called one another already, and no more do"));
        }
        let calls = &self.together.calls;
        let counted = calls.fetch_update(Relaxed, Relaxed, |calls| (calls < MAX_CALLS).then_some(calls + 1));
        counted.map_err(|_| {
            format!("the call, with all that it calls, has called {MAX_CALLS} tools, and calls no more")
        })?;
        let number = self.usage.whole().calls.fetch_add(1, Relaxed) + 1;
        let call = ToolCall::new(format!("{}/{number}", self.call_id), name, arguments);
        // Which tool it comes to is settled on its way, and so is whether this one may call it.
        let parent =
            Parent { invocation: &self.invocation, grant: &self.grant, usage: &self.usage, together: &self.together };
        let context = Context { depth, parent: Some(parent), ..Context::alone(&self.memory) };
        let result = self.pipeline.call(call, context).await;
        let told = result.content().into_owned();
        match &result.outcome {
            Ok(_) => Ok(told),
            // The words alone, where there is nothing but words.
            Err(error) if error.json.is_none() => Err(error.message.clone()),
            Err(_) => Err(told),
        }
    }
}

impl Services for Attendant {
    fn cached(&self, key: &str) -> Option<String> {
        match self.grant.rights().cache() {
            Ok(()) => self.cache().get(&self.key(key)),
            Err(denial) => {
                self.usage.refused(denial);
                None
            }
        }
    }

    fn cache(&self, key: String, value: String) -> Result<(), String> {
        self.grant.rights().cache().map_err(|denial| self.refused(denial))?;
        self.cache().set(self.key(&key), value)
    }

    fn show(&self, piece: Piece) -> BoxFuture<'_, ()> {
        let bytes = piece.len();
        Box::pin(self.show_part(parts::shown(piece), bytes))
    }

    fn measure(&self, done: u64, total: Option<u64>) -> BoxFuture<'_, ()> {
        Box::pin(self.show_part(Part::Progress { done, total }, size_of::<[u64; 2]>()))
    }

    fn complete(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, String>> {
        Box::pin(self.ask(question))
    }

    fn call(&self, name: String, arguments: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.call_tool(name, arguments))
    }

    fn secrets(&self) -> Vec<String> {
        let mut names: Vec<_> = self.grant.secrets().iter().map(|SecretRequest { name, .. }| name.clone()).collect();
        names.dedup();
        names
    }
}
