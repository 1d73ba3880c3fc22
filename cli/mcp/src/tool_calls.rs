//! Tool calls: the name in the runtime, the way to ask the user, the sealed state of a repeated call, and the answer.

use std::sync::Arc;

use futures::FutureExt;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ErrorData, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolcrib::ToolResult;
use toolcrib::flow::Label;
use toolcrib::tool::Body;
use toolcrib_base::{render, suggestion};

use super::access::Identity;
use super::call::{self, Stop};
use super::caller::{Answer, Caller, Channel, OpenQuestion};
use super::catalog::{CALL, SEARCH};
use super::charge::Charge;
use super::consent;
use super::dialogue::Dialogue;
use super::handler::{Handler, LATER, invalid};
use super::key::KeyLookup;
use super::once::KeyedCall;
use super::pausing::Asked;
use super::publication::Published;
use super::running::{Happening, RunningCall};
use super::search;
use super::state::{MAX_AGE, Questions};
use super::{label, trace};

/// Key of the question in an answer that requests input.
const QUESTION: &str = "approval";

impl Handler {
    /// Calls a tool, or refuses it with an open question.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let identity = Identity::of(&context.extensions);
        let label = label::stated(&context.meta)?;
        // A reload during the call does not change it.
        let published = &self.published(&identity).await?;
        let (name, arguments) = (request.name.to_string(), request.arguments.unwrap_or_default());
        let has_pair = published.catalog.has_pair();
        let (name, arguments) = match name.as_str() {
            SEARCH if has_pair => return found(published, arguments).await.map(Into::into),
            CALL if has_pair => unwrapped(arguments)?,
            _ => (name, arguments),
        };
        let arguments = Value::Object(arguments).to_string();
        let binding = json!([identity.holder, name, arguments]).to_string();
        let questions = match request.request_state {
            Some(state) => self.questions(&state, (&identity.holder, &binding)).await?,
            None => Questions::default(),
        };
        let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
        if self.stopping.is_cancelled() {
            return Err(ErrorData::internal_error("the server is ending", None));
        }
        let mut call = match &questions.program {
            // It has its key already.
            Some(program) => self.resumed(program, answer.map(consent::read))?,
            None => {
                let key = match self.keyed((&name, &arguments), published, &identity, context).await? {
                    KeyLookup::Before(result) => return Ok((*result).into()),
                    KeyLookup::Made(key) => Some(key),
                    KeyLookup::Keyless => None,
                };
                self.begun(published, &name, (arguments, label, key), (&identity, &questions, answer), context)
            }
        };
        let asked = Asked { binding: &binding, client: &identity.holder };
        let mut request = call.attend(context, &self.stopping);
        let mut due = self.due(&call, context);
        let result = loop {
            let happening = tokio::select! {
                biased;
                happening = call.next(&mut request) => happening,
                () = &mut due => match self.make_task(call, name.clone(), &identity.holder, context) {
                    Ok(created) => return Ok(created.into()),
                    Err(running) => {
                        (call, due) = (*running, std::future::pending().boxed());
                        continue;
                    }
                },
            };
            match happening {
                Happening::Ended(result) => break result,
                Happening::Asked(question) => match self.pause(call, question, &asked, context) {
                    Ok(answer) => return Ok(answer),
                    Err(running) => call = *running,
                },
            }
        };
        if result.is_some() {
            request.finish().await;
        }
        let Some(result) = result else {
            call.settle(None).await;
            // The client does not wait for the answer of a call that it cancelled.
            return Err(ErrorData::internal_error("the call was cancelled", None));
        };
        let answer = self.answered(&call, &name, &result, &binding);
        match &answer {
            Ok(CallToolResponse::Complete(result)) => call.settle(Some(result)).await,
            // Also an error: no tool has the name.
            _ => call.free_key().await,
        }
        answer
    }

    /// Creates the answer to the request of a call that has ended.
    fn answered(
        &self,
        call: &RunningCall,
        name: &str,
        result: &ToolResult,
        binding: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        let published = &call.published;
        if let Some(fault @ toolcrib::Error::UnknownTool { nearest, .. }) = &result.fault {
            let meant = nearest.as_deref().and_then(|own| published.catalog.name_of(own));
            let similar = meant.or_else(|| suggestion::nearest(name, published.catalog.names()));
            let similar = similar.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default();
            return Err(invalid(format!("{}{similar}", render::one_line(&fault.to_string()))));
        }
        let mut open = call.caller.take_open();
        let input = open.iter().position(|(_, question)| matches!(question, OpenQuestion::Input { .. }));
        if let Some((_, OpenQuestion::Input { message, digest })) = input.map(|at| open.swap_remove(at)) {
            let questions = Questions { agreed: agreed(&call.caller), open: digest, program: None };
            return self.input_required(message, questions, binding);
        }
        open.into_iter().for_each(|(invocation, question)| call.caller.leave_open(&invocation, question));
        Ok(call.converted(name, result).into())
    }

    /// Begins the call of a request.
    pub(super) fn begun(
        &self,
        published: &Arc<Published>,
        name: &str,
        (arguments, label, key): (String, Option<Label>, Option<KeyedCall>),
        (identity, questions, answer): (&Identity, &Questions, Option<&Value>),
        context: &RequestContext<RoleServer>,
    ) -> RunningCall {
        let client = context.client_info().map_or_else(
            || "unknown client".to_owned(),
            |client| render::one_line(&format!("{} {}", client.name, client.version)),
        );
        let own = published.catalog.own_name(name).to_owned();
        let tool = published.runtime.tool(&own);
        let in_background = tool.is_some_and(|tool| matches!(&tool.body, Body::Script(script) if script.background));
        let makes_task = in_background && Self::makes_tasks(context);
        let cancelled = CancellationToken::new();
        let (dialogue, asked) = match tool.is_some_and(call::runs_programs) {
            true => Some(Dialogue::new(MAX_AGE, cancelled.clone())).unzip(),
            false => (None, None),
        };
        let channel = match self.asks_clients {
            true => self.channel(context, questions, answer, dialogue),
            false => Channel::CommandLine,
        };
        let caller = Arc::new(Caller::new(client, identity, channel).traced(trace::of(context)).labelled(label));
        let stop = Stop {
            cancelled: cancelled.clone(),
            stopping: self.stopping.clone(),
            closing: self.closing().clone(),
            unfinished: self.unfinished.clone(),
        };
        let id = format!("mcp_{:016x}", rand::random::<u64>());
        let work = call::perform(published, &id, (own, arguments), caller.clone(), stop, makes_task);
        // Nobody reads figures over standard streams.
        let charged = context.extensions.get::<Parts>().map(|parts| {
            let (metrics, quotas) = (self.metrics.clone(), self.quotas.clone());
            let charge = Charge { metrics, quotas, token: identity.name.clone(), holder: identity.holder.clone() };
            published.parts.charges.begin(&id, charge, parts.extensions.get().cloned())
        });
        // Dropped after the work: a call that is cancelled ends when its work is dropped.
        let work = async move {
            let _charged = charged;
            work.await
        };
        let work = self.running.track_future(work);
        let work = match self.threads.clone() {
            Some(threads) => async move { threads.run(work, !in_background).await }.boxed(),
            None => work.boxed(),
        };
        RunningCall::new(id, published.clone(), caller, work, asked, cancelled).observing(makes_task, key)
    }

    /// Chooses the way to ask the user of a client, by its abilities.
    fn channel(
        &self,
        context: &RequestContext<RoleServer>,
        questions: &Questions,
        answer: Option<&Value>,
        program: Option<Dialogue>,
    ) -> Channel {
        match (can_ask(context), repeats(context)) {
            (false, _) => Channel::CommandLine,
            (true, false) => {
                Channel::Request { client: Box::new(context.peer.clone()), closing: self.closing().clone() }
            }
            (true, true) => {
                // Ignore answers without a state: nothing was asked.
                let answer = answer.filter(|_| !questions.open.is_empty()).map(consent::read);
                let mut agreed = questions.agreed.clone();
                agreed.extend((answer == Some(Answer::Allowed)).then(|| questions.open.clone()));
                Channel::Repetition { agreed, refusal: answer.filter(|answer| *answer != Answer::Allowed), program }
            }
        }
    }

    /// Opens the state of a repeated call.
    async fn questions(&self, state: &str, asked: (&str, &str)) -> Result<Questions, ErrorData> {
        let continues =
            |questions: &Questions| questions.program.as_ref().is_none_or(|program| self.paused.waits(&program.place));
        self.seal.open(state, asked, continues).await.map_err(|error| invalid(render::message(&error)))
    }

    /// Creates the answer after which the client asks its user and repeats the call.
    pub(super) fn input_required(
        &self,
        message: String,
        questions: Questions,
        binding: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        let failed = || ErrorData::internal_error("the question cannot be asked", None);
        let form = consent::form(message).ok_or_else(failed)?;
        let state = self.seal.seal(questions, binding);
        let state = state.map_err(|error| ErrorData::internal_error(render::message(&error), None))?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = InputRequests::from_iter([(QUESTION.to_owned(), request)]);
        let mut result = InputRequiredResult::from_input_requests(requests);
        result.request_state = Some(state);
        Ok(result.into())
    }
}

/// Returns `true` if a client can show forms to its user. One that names no kind can.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|abilities| abilities.elicitation);
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Returns `true` if a client repeats a request with the answers of its user.
pub(super) fn repeats(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= LATER)
}

/// Questions that the user agreed to so far.
fn agreed(caller: &Caller) -> Vec<String> {
    match &caller.channel {
        Channel::Repetition { agreed, .. } => agreed.clone(),
        _ => Vec::new(),
    }
}

/// Answers a search for unlisted tools.
async fn found(published: &Arc<Published>, arguments: Map<String, Value>) -> Result<CallToolResult, ErrorData> {
    let published = published.clone();
    let find = move || {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        search::find(published.catalog.unlisted(), query, arguments.get("max_results").and_then(Value::as_u64))
    };
    // A search among many tools takes longer than other requests should wait.
    let found = tokio::task::spawn_blocking(find).await;
    let found = found.map_err(|_| ErrorData::internal_error("the search failed", None))?;
    Ok(CallToolResult::success(vec![ContentBlock::text(found.to_string())]))
}

/// Returns the name and arguments of the tool that a call through the pair names.
fn unwrapped(mut arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), ErrorData> {
    let name = match arguments.remove("name") {
        Some(Value::String(name)) => name,
        _ => return Err(invalid("`name`: expected the name of a tool".to_owned())),
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(arguments)) => Ok((name, arguments)),
        Some(_) => Err(invalid("`arguments`: expected an object".to_owned())),
    }
}
