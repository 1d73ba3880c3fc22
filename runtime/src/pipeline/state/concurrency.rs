//! Limits the calls that run at once, per tool and in total, and the calls that wait. Runtimes can share the limits; the
//! conversations of all of them share the places fairly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::time::timeout;

use crate::error::{Outcome, ToolError};
use crate::figures::WAITING_CALLS;
use crate::pipeline::prepared::PreparedTool;
use crate::tool::Limits;

use super::Memory;
use super::places::{Admission, CallPlace, Places, ToolPlaces};

/// Limits of concurrent and waiting calls.
pub(crate) struct Concurrency {
    places: Mutex<Places>,
    /// Places of tools by their names.
    tools: Mutex<HashMap<String, Weak<ToolPlaces>>>,
    max_running: usize,
    max_waiting: usize,
}

/// Place of one running call, which is given back on drop.
pub(crate) struct Permit<'a> {
    concurrency: &'a Concurrency,
    place: CallPlace,
}

/// Call that waits for a place, and leaves the queue on drop.
struct QueuedCall<'a> {
    concurrency: &'a Concurrency,
    /// The wanted place; `None` once the call was admitted or refused.
    place: Option<CallPlace>,
    number: u64,
    admission: Receiver<Admission>,
}

impl Concurrency {
    /// Creates the limits for `running` calls at once at each depth, and `max_waiting` waiting calls.
    pub(crate) fn new(running: u32, max_waiting: usize) -> Self {
        let max_running = running as usize;
        let places = Mutex::new(Places::new(max_running, max_waiting));
        Self { places, tools: Mutex::default(), max_running, max_waiting }
    }

    /// Returns a tool's places: half of all.
    pub(crate) fn places_of(&self, tool: &str) -> Arc<ToolPlaces> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tools.get(tool).and_then(Weak::upgrade) {
            return places;
        }
        tools.retain(|_, places| places.strong_count() > 0);
        let places = self.new_places();
        tools.insert(tool.to_owned(), Arc::downgrade(&places));
        places
    }

    /// Creates places for a hook's calls: half of all.
    pub(crate) fn new_places(&self) -> Arc<ToolPlaces> {
        ToolPlaces::new(self.max_running.div_ceil(2))
    }

    /// Waits for a call's place: among the calls of its tool, so that a tool that hangs leaves places to the others, and
    /// among all. Below the first depth a call needs no place of its tool, which its caller may hold.
    ///
    /// # Errors
    ///
    /// [`Outcome::Busy`] if too many calls wait, [`Outcome::Deadline`] if no place is free in time.
    pub(crate) async fn acquire<'a>(
        &'a self,
        prepared: &PreparedTool,
        memory: &Memory,
        limits: &Limits,
        depth: u32,
    ) -> Result<Permit<'a>, ToolError> {
        self.acquire_place(CallPlace::new(depth, memory, Some(&prepared.places)), limits).await
    }

    /// Waits for a place as [`Concurrency::acquire`] does, among all calls of one depth alone.
    ///
    /// # Errors
    ///
    /// As for [`Concurrency::acquire`].
    pub(crate) async fn acquire_any(
        &self,
        memory: &Memory,
        limits: &Limits,
        depth: u32,
    ) -> Result<Permit<'_>, ToolError> {
        self.acquire_place(CallPlace::new(depth, memory, None), limits).await
    }

    async fn acquire_place(&self, place: CallPlace, limits: &Limits) -> Result<Permit<'_>, ToolError> {
        let queued = {
            let mut places = self.places();
            if places.start(&place) {
                return Ok(Permit { concurrency: self, place });
            }
            // Under the same lock: no call that ends meanwhile misses this one.
            let (admit, admission) = oneshot::channel();
            let queued = places.enqueue(&place, admit);
            queued.map(|(number, displaced)| {
                (displaced, QueuedCall { concurrency: self, place: Some(place), number, admission })
            })
        };
        Box::pin(self.wait(queued, limits)).await
    }

    async fn wait<'a>(
        &'a self,
        queued: Option<(Option<Sender<Admission>>, QueuedCall<'a>)>,
        limits: &Limits,
    ) -> Result<Permit<'a>, ToolError> {
        let max = self.max_waiting;
        let busy = || ToolError::new(Outcome::Busy, format!("{max} calls are already queued; try again later"));
        let (displaced, mut queued) = queued.ok_or_else(busy)?;
        if let Some(displaced) = displaced {
            // A call that was dropped needs no answer.
            let _ = displaced.send(Admission::Refused);
        }
        let _waiting = WAITING_CALLS.enter();
        match timeout(limits.deadline, &mut queued.admission).await {
            Ok(Ok(Admission::Admitted)) => queued.take().ok_or_else(busy),
            Ok(Ok(Admission::Refused) | Err(_)) => {
                queued.place = None;
                Err(busy())
            }
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out waiting for its turn")),
        }
    }

    /// Ends a running call, and admits calls that waited for its place.
    fn end(&self, place: &CallPlace) {
        self.admit_after(place.depth(), |places| places.end(place));
    }

    /// Makes a change, and admits the calls at one depth that have a place then. They are woken outside of the lock.
    fn admit_after(&self, depth: usize, change: impl FnOnce(&mut Places)) {
        let mut admitted = {
            let mut places = self.places();
            change(&mut places);
            places.next_admitted(depth)
        };
        while let Some((place, admit)) = admitted {
            let was_dropped = admit.send(Admission::Admitted).is_err();
            let mut places = self.places();
            if was_dropped {
                places.end(&place);
            }
            admitted = places.next_admitted(depth);
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> QueuedCall<'a> {
    /// Returns the place of a call that was admitted.
    fn take(&mut self) -> Option<Permit<'a>> {
        Some(Permit { concurrency: self.concurrency, place: self.place.take()? })
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let was_queued = self.concurrency.places().withdraw(&place, self.number);
        // An admission that is not sent yet fails from now on.
        self.admission.close();
        match was_queued {
            // Conversations can have more places now that this one has fewer calls.
            true => self.concurrency.admit_after(place.depth(), |_| {}),
            false if matches!(self.admission.try_recv(), Ok(Admission::Admitted)) => self.concurrency.end(&place),
            false => {}
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.concurrency.end(&self.place);
    }
}
