//! Events for open pages: the revision of what a page shows, and the number of waiting calls. One task for all pages
//! looks a few times a second, and only while a page listens.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::json;
use tokio::sync::watch;

use super::revision::{Subject, Waiting};
use super::session::{Rights, Session};
use super::view::Views;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// Time after which the calls that wait are read again although their file is the same: they expire, and end with their runs.
const REREAD: Duration = Duration::from_secs(2);
/// Time without an event after which one without news tells a page that the console still runs.
const BEAT: Duration = Duration::from_secs(10);
/// Maximum listening pages of all sessions with the same rights, so that those that only look keep out none that decides.
const MAX_LISTENERS: usize = 16;
/// Maximum listening pages of a session. A browser opens six connections to a host, and needs some of them for pages.
const MAX_OF_SESSION: usize = 4;

/// Listening pages, and what they were told last.
#[derive(Debug)]
pub(super) struct Events {
    pages: Mutex<Pages>,
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Pages {
    next: u64,
    open: HashMap<u64, Page>,
    /// `true` while the task looks.
    is_watched: bool,
}

/// Page that listens.
#[derive(Debug)]
struct Page {
    session: String,
    rights: Rights,
    subject: Subject,
}

/// State at the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    revisions: HashMap<Subject, String>,
    waiting: usize,
}

/// Calls that wait, as they were read last.
#[derive(Debug, Default)]
struct Reading {
    stamp: u64,
    at: Option<Instant>,
    waiting: Waiting,
}

/// Listening page. It leaves the others when it is dropped.
#[derive(Debug)]
struct Listener {
    events: Arc<Events>,
    number: u64,
    subject: Subject,
    session: Weak<Session>,
    seen: watch::Receiver<Seen>,
    /// Event with news that was sent last.
    sent: Option<String>,
    /// Time at which an event was sent last, with news or without.
    sent_at: tokio::time::Instant,
}

impl Events {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { pages: Mutex::default(), seen: watch::Sender::default() })
    }

    /// Returns the events for a page as a stream; `None` if too many pages listen.
    pub(super) fn listen(
        self: &Arc<Self>,
        views: &Arc<Views>,
        session: &Arc<Session>,
        subject: Subject,
    ) -> Option<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let mut pages = self.pages();
        let of_session = pages.open.values().filter(|page| page.session == session.name).count();
        let alike = pages.open.values().filter(|page| page.rights == session.rights).count();
        if of_session >= MAX_OF_SESSION || alike >= MAX_LISTENERS {
            return None;
        }
        let number = pages.next;
        pages.next += 1;
        let page = Page { session: session.name.clone(), rights: session.rights, subject: subject.clone() };
        pages.open.insert(number, page);
        if !std::mem::replace(&mut pages.is_watched, true) {
            tokio::spawn(self.clone().watch(views.clone()));
        }
        let (session, seen) = (Arc::downgrade(session), self.seen.subscribe());
        let listener = Listener {
            events: self.clone(),
            number,
            subject,
            session,
            seen,
            sent: None,
            sent_at: tokio::time::Instant::now(),
        };
        Some(stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok(Bytes::from(event)), listener))
        }))
    }

    /// Looks until no page listens.
    async fn watch(self: Arc<Self>, views: Arc<Views>) {
        let mut reading = Reading::default();
        while let Some(subjects) = self.subjects() {
            let views = views.clone();
            // The task goes on if a look fails.
            if let Ok((seen, read)) = tokio::task::spawn_blocking(move || look(&views, &subjects, reading)).await {
                self.seen.send_if_modified(|last| std::mem::replace(last, seen.clone()) != seen);
                reading = read;
            } else {
                reading = Reading::default();
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Returns the subjects of the pages that listen; `None` if there are none, after which nobody looks.
    fn subjects(&self) -> Option<HashSet<Subject>> {
        let mut pages = self.pages();
        pages.is_watched = !pages.open.is_empty();
        if !pages.is_watched {
            self.seen.send_replace(Seen::default());
        }
        pages.is_watched.then(|| pages.open.values().map(|page| page.subject.clone()).collect())
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the present state of subjects.
fn look(views: &Views, subjects: &HashSet<Subject>, mut reading: Reading) -> (Seen, Reading) {
    let stamp = views.pending_stamp();
    if reading.stamp != stamp || reading.at.is_none_or(|at| at.elapsed() > REREAD) {
        reading = Reading { stamp, at: Some(Instant::now()), waiting: views.waiting() };
    }
    let revision = |subject: &Subject| (subject.clone(), views.revision(subject, &reading.waiting));
    let seen = Seen { revisions: subjects.iter().map(revision).collect(), waiting: reading.waiting.count() };
    (seen, reading)
}

impl Listener {
    /// Waits for the next event; `None` once the session has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            let event = self.event();
            if event.is_some() && event != self.sent {
                self.sent.clone_from(&event);
                self.sent_at = tokio::time::Instant::now();
                return event;
            }
            // Changes of other pages do not put the beat off.
            let changed = tokio::time::timeout_at(self.sent_at + BEAT, self.seen.changed()).await;
            // A session that can open no page any more gets no events either.
            if self.session.strong_count() == 0 || matches!(changed, Ok(Err(_))) {
                return None;
            }
            if changed.is_err() {
                self.sent_at = tokio::time::Instant::now();
                return Some("event: beat\ndata: 1\n\n".to_owned());
            }
        }
    }

    /// Returns the event with the present state, once it is known.
    fn event(&mut self) -> Option<String> {
        let seen = self.seen.borrow_and_update();
        let revision = seen.revisions.get(&self.subject)?;
        Some(format!("event: state\ndata: {}\n\n", json!({ "revision": revision, "waiting": seen.waiting })))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.events.pages().open.remove(&self.number);
    }
}
