//! Client requests in both revisions: list, call, stored results, and notices of a changed list. The state is outside
//! of the handler, because the library may create one for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode,
    ErrorData, ExtensionCapabilities, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    GetTaskParams, GetTaskResult, Implementation, JsonObject, ListResourcesResult, ListSkillsResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, SKILLS_EXTENSION_ID, ServerCapabilities, ServerConfig,
    SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::Error;
use toolcrib_base::render;
use toolcrib_shared_state::{StateStore, StoreObserver};

use super::access::{Identity, owner};
use super::answer::RESULTS;
use super::call::MAX_FINISH;
use super::call_threads::CallThreads;
use super::ending::{answered, ended};
use super::metrics::Metrics;
use super::once::KeyedCalls;
use super::pages::page;
use super::paused::PausedCalls;
use super::publication::{OwnFault, Publication, Published};
use super::quotas::Quotas;
use super::skills::SCHEME;
use super::state::Seal;
use super::task_requests::TASK_AFTER;
use super::tasks::Tasks;
use super::tool_calls::repeats;

/// Number of tools per list page.
const PAGE: usize = 500;
/// Time for which a client may keep a list, in milliseconds.
pub(super) const LIST_TTL_MS: u64 = 60_000;
/// Maximum size of a stored result that is read as a whole, in bytes.
pub(super) const MAX_READ: u64 = 4 << 20;
/// Time between two looks at whether a client is still connected.
const CLIENT_CHECK: Duration = Duration::from_secs(30);
/// Maximum time in which calls stop and leave their records.
const MAX_STOP: Duration = MAX_FINISH.saturating_add(Duration::from_secs(2));
/// Revision without conversations.
pub(super) const LATER: &str = "2026-07-28";
/// Methods that have parameters.
const METHODS: [&str; 17] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
];
/// Maximum length of an unknown method's name in an error, in characters.
const MAX_METHOD_LEN: usize = 128;
/// Instructions for clients and models.
const INSTRUCTIONS: &str = "Each call runs in a fresh sandbox with the permissions that the user granted. A denied permission \
                            or a call that waits for approval is answered with an error that says so: only the user can \
                            change it, outside of this conversation.";

/// Handler of client requests.
#[derive(Clone)]
pub struct Handler {
    publication: Publication,
    pub(super) seal: Arc<Seal>,
    /// `true` if clients that can ask their user do so.
    pub(super) asks_clients: bool,
    pub(super) metrics: Arc<Metrics>,
    /// Quotas of each token over HTTP.
    pub(super) quotas: Option<Arc<Quotas>>,
    /// Store of the server, if one is shared.
    store: Option<Arc<dyn StateStore>>,
    closing: CancellationToken,
    pub(super) stopping: CancellationToken,
    pub(super) running: TaskTracker,
    /// Number of calls that were stopped after their client had left.
    pub(super) unfinished: Arc<AtomicUsize>,
    /// Threads of the calls; `None` if each call runs on its connection's threads.
    pub(super) threads: Option<Arc<CallThreads>>,
    /// Programs that wait for an answer of their client.
    pub(super) paused: Arc<PausedCalls>,
    /// Keys of calls; `None` if none are kept.
    pub(super) once: Option<Arc<KeyedCalls>>,
    /// Calls that go on as tasks.
    pub(super) tasks: Arc<Tasks>,
    /// Time after which a call becomes a task.
    pub(super) task_after: Duration,
    /// `true` once this conversation's client is notified of changes.
    is_notified: Arc<AtomicBool>,
}

impl Handler {
    /// Creates a handler. With `asks_clients`, clients that can ask their user do so.
    pub fn new(publication: Publication, seal: Seal, asks_clients: bool) -> Self {
        Self {
            publication,
            seal: Arc::new(seal),
            asks_clients,
            metrics: Arc::new(Metrics::new(false)),
            quotas: None,
            store: None,
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
            running: TaskTracker::new(),
            unfinished: Arc::default(),
            threads: None,
            paused: Arc::default(),
            once: None,
            tasks: Arc::default(),
            task_after: TASK_AFTER,
            is_notified: Arc::default(),
        }
    }

    /// Counts the calls of each token in the figures.
    #[must_use]
    pub fn counting_tokens(self) -> Self {
        Self { metrics: Arc::new(Metrics::new(true)), ..self }
    }

    /// Limits the calls of each token over HTTP.
    #[must_use]
    pub fn with_quotas(self, quotas: Arc<Quotas>) -> Self {
        Self { quotas: Some(quotas), ..self }
    }

    /// Keeps the keys that clients state for their calls, with the results, in a store.
    #[must_use]
    pub fn with_keys_in(self, store: Arc<dyn StateStore>) -> Self {
        Self { once: Some(KeyedCalls::new(store)), ..self }
    }

    /// Refuses requests that need this store while it does not answer.
    #[must_use]
    pub fn on_store(self, store: Arc<dyn StateStore>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// Returns the observer that counts operations of a store in the figures.
    pub fn store_observer(&self) -> Arc<dyn StoreObserver> {
        self.metrics.clone()
    }

    /// Returns `false` while the shared store does not answer.
    pub(super) fn has_store(&self) -> bool {
        self.store.as_ref().is_none_or(|store| store.is_available())
    }

    /// Makes a call a task after this time, for clients that know tasks.
    #[must_use]
    pub fn with_tasks_after(self, time: Duration) -> Self {
        Self { task_after: time, ..self }
    }

    /// Returns the quotas of each token.
    pub(super) fn quotas(&self) -> Option<&Arc<Quotas>> {
        self.quotas.as_ref()
    }

    /// Runs calls on these threads.
    pub(super) fn on_threads(self, threads: CallThreads) -> Self {
        Self { threads: Some(Arc::new(threads)), ..self }
    }

    /// Returns the handler of one more conversation.
    pub(super) fn for_conversation(&self) -> Self {
        Self { is_notified: Arc::default(), ..self.clone() }
    }

    /// Returns the token that ends subscriptions, so that nothing waits for them when the service ends.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Returns the figures of the calls.
    pub(super) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Stops all running calls, and waits until each has left its record.
    pub(super) async fn stop(&self) {
        self.stopping.cancel();
        ended(&self.running, self.publication.end(), MAX_STOP).await;
    }

    /// Returns the present state for the client of a request.
    pub(super) async fn published(&self, client: &Identity) -> Result<Arc<Published>, ErrorData> {
        let published = self.publication.of(client).await.map_err(|fault| {
            let text = match fault {
                OwnFault::Unusable => {
                    "the options of this token or person make the tools unusable: ask the operator; the server's messages state \
                     the reason"
                }
                OwnFault::TooMany => {
                    "clients with too many different options are busy: repeat the request later, or ask the operator for rules \
                     with fewer sets of options"
                }
            };
            ErrorData::internal_error(text, None)
        })?;
        match published.has_room_for(client) {
            true => Ok(published),
            false => Err(ErrorData::internal_error("the server has conversations of too many clients today", None)),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .enable_extensions_with(extensions())
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let published = self.published(&Identity::of(&context.extensions)).await?;
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = page(cursor, published.catalog.tools().len(), PAGE)?;
        let mut result = ListToolsResult::with_all_items(published.catalog.page(page, repeats(&context)));
        result.next_cursor = next;
        result.ttl_ms = Some(LIST_TTL_MS);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.skill_resources(cursor, &Identity::of(&context.extensions)).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.skills(request.and_then(|request| request.cursor), &Identity::of(&context.extensions)).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.skill(&request.uri, &Identity::of(&context.extensions)).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.skill_folder(&request.uri, request.cursor, &Identity::of(&context.extensions)).await
    }

    /// Returns a tool, so that the library compares the arguments that its schema names as headers with the headers.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.publication.listed(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // In a box, as the library moves the future that answers any request with room for the largest.
        answered(Box::pin(self.call(request, &context))).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.state_of(&request, &context)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer_task(&request, &context)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.stop_task(&request, &context)
    }

    /// Refuses a request that the library does not know. It also passes on those with parameters that it cannot read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The later revision begins no conversation.
        let is_later = context.protocol_version().is_some_and(|version| version.as_str() >= LATER);
        let is_known = |method: &str| METHODS.contains(&method) && !(is_later && method == METHODS[0]);
        if is_known(&request.method) {
            return Err(invalid(format!("`{}`: invalid parameters for this method", request.method)));
        }
        let method = render::one_line(&request.method);
        let message = format!("no method `{}`", render::shortened(&method, MAX_METHOD_LEN));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    /// Refuses every prompt: the list of prompts is empty.
    async fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(invalid("no such prompt".to_owned()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.starts_with(SCHEME) {
            let read = Box::pin(self.read_skill(&request.uri, &context));
            return answered(read).await.map(Into::into);
        }
        let unknown = || ErrorData::resource_not_found("no such resource", Some(json!({ "uri": request.uri })));
        let reference = request.uri.strip_prefix(RESULTS).ok_or_else(unknown)?.to_owned();
        let identity = Identity::of(&context.extensions);
        let owner = owner(&identity.holder).map(Into::into);
        let results = self.publication.general().results.clone().of_owner(owner);
        let read = move || results.open(&reference, ..MAX_READ);
        let part = tokio::task::spawn_blocking(read).await.map_err(|_| unknown())?.map_err(|error| match error {
            Error::Results { .. } => {
                ErrorData::internal_error("the result cannot be read now: read it again later", None)
            }
            _ => unknown(),
        })?;
        if part.next.is_some() {
            let bytes = part.stored.bytes;
            return Err(invalid(format!("the result has {bytes} bytes: read it in parts with `read_result`")));
        }
        let session = self.published(&identity).await?.session(&identity.holder);
        session.note_result(&part.stored).map_err(|refusal| invalid(refusal.message))?;
        let contents = ResourceContents::text(part.text(), &request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.publication.changes();
        changes.mark_unchanged();
        let cancelled = context.request_context().ct.clone();
        loop {
            tokio::select! {
                () = cancelled.cancelled() => return Ok(()),
                () = self.closing.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.is_notified.swap(true, Relaxed) {
            return;
        }
        let (mut changes, peer) = (self.publication.changes(), context.peer);
        changes.mark_unchanged();
        // Ends when the client does.
        tokio::spawn(async move {
            while !peer.is_transport_closed() {
                match tokio::time::timeout(CLIENT_CHECK, changes.changed()).await {
                    Err(_) => {}
                    Ok(Ok(())) if peer.notify_tool_list_changed().await.is_ok() => {}
                    Ok(_) => return,
                }
            }
        });
    }
}

/// Returns the extensions of the protocol that the server has.
fn extensions() -> ExtensionCapabilities {
    let settings = match json!({ "directoryRead": true }) {
        Value::Object(settings) => settings,
        _ => JsonObject::new(),
    };
    ExtensionCapabilities::from_iter([(SKILLS_EXTENSION_ID.to_owned(), settings)])
}

pub(super) fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}
