//! EventKind calls show while they run, on its way to whoever prints it: previews and parts, in their order, each with the time
//! since its call began to run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib::Session;
use toolcrib::call::{Link, Media, Part};
use toolcrib::observe::{Event, EventKind, Observer};

use crate::media::MediaFolder;
use crate::render;

/// Something that a call shows.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) what: Sight,
}

/// EventKind it shows.
#[derive(Debug)]
pub(crate) enum Sight {
    /// EventKind it is about to do, before it runs.
    Preview(String),
    /// A part of its work, so many milliseconds after it began.
    Part { number: u64, ms: f64, part: Part },
}

/// Where what calls show comes out.
pub(crate) struct Sights(UnboundedReceiver<Seen>);

impl Sights {
    /// Watches the calls of a conversation. How much they show is bounded by the runtime.
    pub(crate) fn of(session: &Session) -> Self {
        let (sender, receiver) = unbounded_channel();
        session.watched_by(Arc::new(Watcher { sender, started: Mutex::default() }));
        Self(receiver)
    }

    /// The next, as soon as there is one.
    pub(crate) async fn next(&mut self) -> Option<Seen> {
        self.0.recv().await
    }

    /// The next, if there is one.
    pub(crate) fn ready(&mut self) -> Option<Seen> {
        self.0.try_recv().ok()
    }
}

struct Watcher {
    sender: UnboundedSender<Seen>,
    /// When each call that runs began to.
    started: Mutex<HashMap<String, SystemTime>>,
}

impl Observer for Watcher {
    fn observe(&self, event: &Event<'_>) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let what = match &event.kind {
            EventKind::Started(_) => {
                started.insert(event.invocation.to_owned(), event.at);
                return;
            }
            EventKind::Ended(_) => {
                started.remove(event.invocation);
                return;
            }
            EventKind::Preview(text) => Sight::Preview((*text).to_owned()),
            EventKind::Part { number, part } => {
                let since = started.get(event.invocation).and_then(|since| event.at.duration_since(*since).ok());
                let ms = since.map_or(0.0, |since| (since.as_secs_f64() * 1e4).round() / 10.0);
                Sight::Part { number: *number, ms, part: (*part).clone() }
            }
            _ => return,
        };
        let (call_id, name) = (event.call_id.to_owned(), event.name.to_owned());
        // Nobody listens any more where the run has ended.
        let _ = self.sender.send(Seen { call_id, name, what });
    }
}

/// A part for a program: its `type` and what it holds, bytes in base64.
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

/// A part for a person, as text; where `folder` is given, media are saved there.
pub(crate) fn text_of(part: &Part, folder: Option<&MediaFolder>) -> String {
    match part {
        Part::Text(text) | Part::Json(text) => text.clone(),
        Part::Link(Link { uri, name: Some(name), .. }) => format!("{name}: {uri}"),
        Part::Link(Link { uri, .. }) => uri.clone(),
        Part::Media(media) => {
            let name = media.name.as_deref().unwrap_or("without a name");
            let bytes = media.data.len();
            match folder {
                Some(folder) => match folder.save(media) {
                    Ok(path) => format!("[{}, {bytes} bytes, saved as {}]", media.mime_type, path.display()),
                    // EventKind cannot be saved ends nothing.
                    Err(error) => {
                        render::warning(&format!("{error:#}"));
                        format!("[{}, {name}, {bytes} bytes, not saved]", media.mime_type)
                    }
                },
                None => format!("[{}, {name}, {bytes} bytes: `--media DIR` saves it]", media.mime_type),
            }
        }
        Part::Progress { done, total: Some(total) } => format!("{done} of {total}"),
        Part::Progress { done, total: None } => done.to_string(),
        _ => String::new(),
    }
}
