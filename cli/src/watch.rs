//! Events of running calls: previews and parts in order, with the time since the call started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib::call::{HookNote, Link, Media, Part};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Session, ToolResult};

use crate::agent::keeper::Keeper;
use crate::media::MediaFolder;
use crate::render;

/// Event of a running call.
#[derive(Debug)]
pub(crate) struct CallEvent {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) kind: CallEventKind,
}

/// Kind of a [`CallEvent`].
#[derive(Debug)]
pub(crate) enum CallEventKind {
    /// Preview of the call, before it runs.
    Preview(String),
    /// Part shown `ms` milliseconds after the call started.
    Part { number: u64, ms: f64, part: Part },
    /// Hooks that changed or blocked the call, when it ends.
    Hooks(Vec<HookNote>),
    /// Result of a call that no other call made, when it ends.
    Ended(Box<ToolResult>),
}

/// Receives call events.
pub(crate) struct CallEvents(UnboundedReceiver<CallEvent>);

impl CallEvents {
    /// Subscribes to the calls of a session. The runtime bounds the number of events.
    pub(crate) fn of(session: &Session) -> Self {
        Self::watching(session, false, None)
    }

    /// Subscribes to the calls of a session, with the result of each call when it ends. The keeper of a kept run learns which
    /// calls were received.
    pub(crate) fn with_results(session: &Session, keeper: Option<&Keeper>) -> Self {
        Self::watching(session, true, keeper.cloned())
    }

    fn watching(session: &Session, has_results: bool, keeper: Option<Keeper>) -> Self {
        let (sender, receiver) = unbounded_channel();
        session.watched_by(Arc::new(Watcher { sender, has_results, keeper, started: Mutex::default() }));
        Self(receiver)
    }

    /// Awaits the next event.
    pub(crate) async fn next(&mut self) -> Option<CallEvent> {
        self.0.recv().await
    }

    /// Returns the next event if one is queued.
    pub(crate) fn ready(&mut self) -> Option<CallEvent> {
        self.0.try_recv().ok()
    }
}

struct Watcher {
    sender: UnboundedSender<CallEvent>,
    /// `true` to send results.
    has_results: bool,
    keeper: Option<Keeper>,
    /// Start times of running calls by invocation.
    started: Mutex<HashMap<String, SystemTime>>,
}

impl Observer for Watcher {
    fn observe(&self, event: &Event<'_>) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let send = |kind| {
            let (call_id, name) = (event.call_id.to_owned(), event.name.to_owned());
            // Fails only after the run has ended.
            let _ = self.sender.send(CallEvent { call_id, name, kind });
        };
        let kind = match &event.kind {
            EventKind::Received(_) => {
                self.keeper.iter().for_each(|keeper| keeper.received(event.invocation, event.call_id));
                return;
            }
            EventKind::Started(_) => {
                started.insert(event.invocation.to_owned(), event.at);
                return;
            }
            EventKind::Ended(result) => {
                started.remove(event.invocation);
                if self.has_results && result.receipt.parent.is_none() {
                    send(CallEventKind::Ended(Box::new((*result).clone())));
                }
                let acted = result.receipt.hooks.iter().filter(|note| note.action.is_some());
                let acted: Vec<_> = acted.cloned().collect();
                if acted.is_empty() {
                    return;
                }
                CallEventKind::Hooks(acted)
            }
            EventKind::Preview(text) => CallEventKind::Preview((*text).to_owned()),
            EventKind::Part { number, part } => {
                let since = started.get(event.invocation).and_then(|since| event.at.duration_since(*since).ok());
                let ms = since.map_or(0.0, |since| (since.as_secs_f64() * 1e4).round() / 10.0);
                CallEventKind::Part { number: *number, ms, part: (*part).clone() }
            }
            _ => return,
        };
        send(kind);
    }
}

/// Formats a part as JSON with its `type`; bytes are base64.
pub(crate) fn json_of(part: &Part) -> Value {
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
pub(crate) fn text_of(part: &Part, folder: Option<&MediaFolder>) -> String {
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
                None => format!("[{}, {name}, {bytes}: `--media DIR` saves it]", media.mime_type),
            }
        }
        Part::Progress { done, total: Some(total) } => format!("{done} of {total}"),
        Part::Progress { done, total: None } => done.to_string(),
        _ => String::new(),
    }
}
