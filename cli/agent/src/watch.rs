//! Events of running calls: previews and parts in order, with the time since the call started. A call of a kept run starts
//! once its beginning is on the disk.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use toolcrib::call::{Behavior, HookNote, Link, Media, Part};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Session, ToolResult};
use toolcrib_base::render;
use toolcrib_sources::media::MediaFolder;

use crate::keeper::Keeper;

/// Maximum wait until the events so far are shown. Only their order depends on it.
const MAX_SHOW: Duration = Duration::from_secs(1);
/// Verdict of a hook that hands a call to another agent.
const DELEGATED: &str = "delegate";

/// Event of a running call.
#[derive(Debug)]
pub struct CallEvent {
    /// Identifier of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Kind of the event.
    pub kind: CallEventKind,
}

/// Kind of a [`CallEvent`].
#[derive(Debug)]
pub enum CallEventKind {
    /// Preview of a call that may run, before it runs.
    Preview(String),
    /// It is decided whether the call runs.
    Decided,
    /// Part of a result that was shown while the call ran.
    Part {
        /// Number of the part, from 1.
        number: u64,
        /// Milliseconds since the call started.
        ms: f64,
        /// The part.
        part: Part,
    },
    /// Hooks that changed or blocked the call, when it ends.
    Hooks(Vec<HookNote>),
    /// Result of a call that no other call made, when it ends.
    Ended(Box<ToolResult>),
    /// The beginning of the call cannot be kept. The call waits until its step is stopped and this event dropped.
    NotKept(anyhow::Error, SyncSender<()>),
    /// A person is about to be asked, who waits until this event is dropped.
    Asking(oneshot::Sender<()>),
}

/// Receives call events.
pub struct CallEvents {
    receiver: UnboundedReceiver<CallEvent>,
    sender: WeakUnboundedSender<CallEvent>,
}

/// Waits for the receiver of call events.
#[derive(Clone)]
pub struct ShownEvents(WeakUnboundedSender<CallEvent>);

impl ShownEvents {
    /// Waits until the events so far are shown, for a moment at most.
    pub(crate) async fn all(&self) {
        let Some(sender) = self.0.upgrade() else { return };
        let (waits, shown) = oneshot::channel();
        let event = CallEvent { call_id: String::new(), name: String::new(), kind: CallEventKind::Asking(waits) };
        if sender.send(event).is_ok() {
            // The other end sends nothing: it is dropped.
            let _ = tokio::time::timeout(MAX_SHOW, shown).await;
        }
    }
}

impl CallEvents {
    /// Subscribes to the calls of a session. The runtime bounds the number of events.
    pub fn of(session: &Session) -> Self {
        Self::watching(session, false, None)
    }

    /// Subscribes to the calls of a session, with each call's result when it ends. The keeper of a kept run learns
    /// which calls were received.
    pub(crate) fn with_results(session: &Session, keeper: Option<&Keeper>) -> Self {
        Self::watching(session, true, keeper.cloned())
    }

    fn watching(session: &Session, has_results: bool, keeper: Option<Keeper>) -> Self {
        let (sender, receiver) = unbounded_channel();
        let weak = sender.downgrade();
        session.watched_by(Arc::new(Watcher { sender, has_results, keeper, calls: Mutex::default() }));
        Self { receiver, sender: weak }
    }

    /// Awaits the next event.
    pub async fn next(&mut self) -> Option<CallEvent> {
        self.receiver.recv().await
    }

    /// Returns the next event if one is queued.
    pub fn ready(&mut self) -> Option<CallEvent> {
        self.receiver.try_recv().ok()
    }

    /// Awaits `work`, and returns the events that are wanted. The others are dropped, and calls that wait for that go on.
    pub(crate) async fn during(
        &mut self,
        work: impl Future<Output = ()>,
        is_wanted: fn(&CallEventKind) -> bool,
    ) -> Vec<CallEvent> {
        let (mut work, mut wanted) = (pin!(work), Vec::new());
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.next() => event,
                () = &mut work => break,
            };
            wanted.extend(Some(event).filter(|event| is_wanted(&event.kind)));
        }
        wanted.extend(std::iter::from_fn(|| self.ready()).filter(|event| is_wanted(&event.kind)));
        wanted
    }

    /// Returns a handle that lets a question wait until events are shown.
    pub(crate) fn shown(&self) -> ShownEvents {
        ShownEvents(self.sender.clone())
    }
}

struct Watcher {
    sender: UnboundedSender<CallEvent>,
    /// `true` to send results.
    has_results: bool,
    keeper: Option<Keeper>,
    calls: Mutex<WatchedCalls>,
}

/// Calls that have not ended, by invocation.
#[derive(Default)]
struct WatchedCalls {
    /// Start times of running calls.
    started: HashMap<String, SystemTime>,
    /// Previews of calls about which nothing is decided.
    previews: HashMap<String, String>,
    /// Calls that a hook hands to another agent.
    delegated: HashSet<String>,
}

impl Watcher {
    fn calls(&self) -> MutexGuard<'_, WatchedCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: &Event<'_>, kind: CallEventKind) {
        let (call_id, name) = (event.call_id.to_owned(), event.name.to_owned());
        // Fails only after the run has ended.
        let _ = self.sender.send(CallEvent { call_id, name, kind });
    }

    /// Sends the preview of a call that may run; the preview for any other call is of no use any more.
    fn decided(&self, event: &Event<'_>, is_allowed: bool) {
        let mut calls = self.calls();
        let preview = calls.previews.remove(event.invocation).filter(|_| is_allowed);
        let is_delegated = calls.delegated.remove(event.invocation) && is_allowed;
        drop(calls);
        if let Some(text) = preview {
            self.send(event, CallEventKind::Preview(text));
        }
        // A call that is delegated does not start: the other agent does.
        if is_delegated {
            self.begin(event);
        }
    }

    /// Keeps that a call begins, before it does. If that fails, the call waits until its step is stopped.
    fn begin(&self, event: &Event<'_>) {
        let Some(Err(error)) = self.keeper.as_ref().map(|keeper| keeper.begun(event.invocation)) else { return };
        let (sender, stopped) = sync_channel(0);
        self.send(event, CallEventKind::NotKept(error, sender));
        // The other end sends nothing: it is dropped.
        let _ = tokio::task::block_in_place(|| stopped.recv());
    }
}

impl Observer for Watcher {
    fn observe(&self, event: &Event<'_>) {
        let invocation = event.invocation;
        let kind = match &event.kind {
            EventKind::Received(_) => {
                self.keeper.iter().for_each(|keeper| keeper.received(invocation, event.call_id));
                return;
            }
            EventKind::HookRan(hook) => {
                if hook.verdict == DELEGATED {
                    self.calls().delegated.insert(invocation.to_owned());
                }
                return;
            }
            EventKind::Preview(text) => {
                self.calls().previews.insert(invocation.to_owned(), (*text).to_owned());
                return;
            }
            EventKind::Decided(decision) => {
                self.decided(event, decision.behavior == Behavior::Allow);
                CallEventKind::Decided
            }
            EventKind::Started(_) => {
                self.begin(event);
                self.calls().started.insert(invocation.to_owned(), event.at);
                return;
            }
            EventKind::Ended(result) => {
                let mut calls = self.calls();
                calls.started.remove(invocation);
                calls.previews.remove(invocation);
                calls.delegated.remove(invocation);
                drop(calls);
                if self.has_results && result.receipt.parent.is_none() {
                    self.send(event, CallEventKind::Ended(Box::new((*result).clone())));
                }
                let acted = result.receipt.hooks.iter().filter(|note| note.action.is_some());
                let acted: Vec<_> = acted.cloned().collect();
                if acted.is_empty() {
                    return;
                }
                CallEventKind::Hooks(acted)
            }
            EventKind::Part { number, part } => {
                let calls = self.calls();
                let since = calls.started.get(invocation).and_then(|since| event.at.duration_since(*since).ok());
                let ms = since.map_or(0.0, |since| (since.as_secs_f64() * 1e4).round() / 10.0);
                CallEventKind::Part { number: *number, ms, part: (*part).clone() }
            }
            _ => return,
        };
        self.send(event, kind);
    }
}

/// Formats a part as JSON with its `type`; bytes are base64.
pub fn json_of(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Json(text) => {
            let value: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
            json!({ "type": "json", "value": value })
        }
        Part::Media(Media { mime_type, name, data, .. }) => {
            use base64::Engine as _;
            let data = base64::prelude::BASE64_STANDARD.encode(data);
            json!({ "type": "media", "mimeType": mime_type, "name": name, "data": data })
        }
        Part::Link(Link { uri, name, mime_type, .. }) => {
            json!({ "type": "link", "uri": uri, "name": name, "mimeType": mime_type })
        }
        Part::Progress { done, total } => json!({ "type": "progress", "done": done, "total": total }),
        _ => Value::Null,
    }
}

/// Formats a part as text; media are saved in `folder`, if given.
pub fn text_of(part: &Part, folder: Option<&MediaFolder>) -> String {
    match part {
        Part::Text(text) | Part::Json(text) => text.clone(),
        Part::Link(Link { uri, name: Some(name), .. }) => format!("{name}: {uri}"),
        Part::Link(Link { uri, .. }) => uri.clone(),
        Part::Media(media) => {
            let name = media.name.as_deref().unwrap_or("without a name");
            let bytes = render::counted(media.data.len(), "byte");
            match folder {
                Some(folder) => match folder.save(media) {
                    Ok(path) => format!("[{}, {bytes}, saved as {}]", media.mime_type, path.display()),
                    // A failure to save does not end the run.
                    Err(error) => {
                        render::warning(&format!("{error:#}"));
                        format!("[{}, {name}, {bytes}, not saved]", media.mime_type)
                    }
                },
                None => format!("[{}, {name}, {bytes}: `--set records.media_dir=DIR` saves it]", media.mime_type),
            }
        }
        Part::Progress { done, total: Some(total) } => format!("{done} of {total}"),
        Part::Progress { done, total: None } => done.to_string(),
        _ => String::new(),
    }
}
