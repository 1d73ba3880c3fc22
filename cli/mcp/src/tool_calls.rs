//! Tool calls: the name in the runtime, the way to ask the user, the sealed state of a repeated call, and the answer.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ErrorData, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use toolcrib::ToolResult;
use toolcrib::tool::Body;
use toolcrib_base::{render, suggestion};

use super::access::Identity;
use super::answer;
use super::call::{self, Receiver, Stop};
use super::caller::{Answer, Caller, Channel, OpenQuestion};
use super::catalog::{CALL, SEARCH};
use super::consent;
use super::handler::{Handler, LATER, invalid};
use super::publication::Published;
use super::search;
use super::state::Questions;
use super::trace;

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
        // A reload during the call does not change it.
        let published = &self.published(&identity).await?;
        let (name, arguments) = (request.name.to_string(), request.arguments.unwrap_or_default());
        let has_pair = published.catalog.has_pair();
        let (name, arguments) = match name.as_str() {
            SEARCH if has_pair => return found(published, arguments).await.map(Into::into),
            CALL if has_pair => unwrapped(arguments)?,
            _ => (name, arguments),
        };
        let client = context.client_info().map_or_else(
            || "unknown client".to_owned(),
            |client| render::one_line(&format!("{} {}", client.name, client.version)),
        );
        let arguments = Value::Object(arguments).to_string();
        let binding = json!([identity.name, name, arguments]).to_string();
        let questions = match request.request_state {
            Some(state) => self.questions(state, binding.clone()).await?,
            None => Questions::default(),
        };
        let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
        let channel = if self.asks_clients { self.channel(context, &questions, answer) } else { Channel::CommandLine };
        let caller = Arc::new(Caller::new(client, &identity, channel).traced(trace::of(context)));
        let progress = context.meta.get_progress_token();
        let progress = progress.map(|token| Receiver { peer: context.peer.clone(), token });
        let own = published.catalog.own_name(&name);
        let tool = published.runtime.tool(own);
        let starts_task = tool.is_some_and(|tool| matches!(&tool.body, Body::Script(script) if script.background));
        if self.stopping.is_cancelled() {
            return Err(ErrorData::internal_error("the server is ending", None));
        }
        let stop = Stop {
            cancelled: context.ct.clone(),
            stopping: self.stopping.clone(),
            closing: self.closing().clone(),
            unfinished: self.unfinished.clone(),
        };
        let call = call::perform(published, own.to_owned(), arguments, caller.clone(), progress, stop);
        let call = self.running.track_future(call);
        let result = match &self.threads {
            Some(threads) => threads.run(call, !starts_task).await,
            None => call.await,
        };
        // The client does not wait for the answer of a call that it cancelled.
        let result = result.ok_or_else(|| ErrorData::internal_error("the call was cancelled", None))?;
        self.metrics.count(&result);
        if let Some(fault @ toolcrib::Error::UnknownTool { nearest, .. }) = &result.fault {
            let meant = nearest.as_deref().and_then(|own| published.catalog.name_of(own));
            let similar = meant.or_else(|| suggestion::nearest(&name, published.catalog.names()));
            let similar = similar.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default();
            return Err(invalid(format!("{}{similar}", render::one_line(&fault.to_string()))));
        }
        match caller.take_open() {
            Some(OpenQuestion::Input { message, digest }) => {
                self.input_required(message, digest, agreed(&caller), &binding)
            }
            open => Ok(self.converted(published, &name, &result, open).into()),
        }
    }

    /// Chooses the way to ask the user of a client, by its abilities.
    fn channel(&self, context: &RequestContext<RoleServer>, questions: &Questions, answer: Option<&Value>) -> Channel {
        let elicitation = context.client_capabilities().and_then(|abilities| abilities.elicitation);
        // A client that names no kind can show forms.
        let can_ask = elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none());
        let repeats = context.protocol_version().is_some_and(|version| version.as_str() >= LATER);
        match (can_ask, repeats) {
            (false, _) => Channel::CommandLine,
            (true, false) => {
                Channel::Request { client: Box::new(context.peer.clone()), closing: self.closing().clone() }
            }
            (true, true) => {
                // Ignore answers without a state: nothing was asked.
                let answer = answer.filter(|_| !questions.open.is_empty()).map(consent::read);
                let mut agreed = questions.agreed.clone();
                agreed.extend((answer == Some(Answer::Allowed)).then(|| questions.open.clone()));
                Channel::Repetition { agreed, refusal: answer.filter(|answer| *answer != Answer::Allowed) }
            }
        }
    }

    /// Opens the state of a repeated call.
    async fn questions(&self, state: String, binding: String) -> Result<Questions, ErrorData> {
        let seal = self.seal.clone();
        let opened = tokio::task::spawn_blocking(move || seal.open(&state, &binding)).await;
        let opened = opened.map_err(|_| ErrorData::internal_error("the state of the call cannot be opened", None))?;
        opened.map_err(|error| invalid(render::message(&error)))
    }

    fn converted(
        &self,
        published: &Published,
        name: &str,
        result: &ToolResult,
        open: Option<OpenQuestion>,
    ) -> CallToolResult {
        answer::convert(result, published.catalog.output(name), open, &published.deny_flags)
    }

    /// Creates the answer after which the client asks its user and repeats the call.
    fn input_required(
        &self,
        message: String,
        digest: String,
        agreed: Vec<String>,
        binding: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        let failed = || ErrorData::internal_error("the question cannot be asked", None);
        let form = consent::form(message).ok_or_else(failed)?;
        let state = self.seal.seal(Questions { agreed, open: digest }, binding);
        let state = state.map_err(|error| ErrorData::internal_error(render::message(&error), None))?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = InputRequests::from_iter([(QUESTION.to_owned(), request)]);
        let mut result = InputRequiredResult::from_input_requests(requests);
        result.request_state = Some(state);
        Ok(result.into())
    }
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
