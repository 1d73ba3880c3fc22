//! Image of a script, made at most once and beside its calls: the second call starts it, because a program that makes one
//! call would gain nothing. It is made from the source alone, so no call can leave anything in it for another.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::sandbox::{EntryPoint, Interpreter, Sandbox, ScriptImage, ScriptSource, ScriptText};
use crate::tool::{Limits, Script};

use super::PreparedTool;

/// Maximum time for the reading of a script, which takes turns with the calls on their threads.
const MAX_READING: Duration = Duration::from_millis(200);
/// Maximum size of all images together, in bytes. Without room, a script is read in each call.
const MAX_TOTAL: usize = 64 << 20;

/// Image of one script.
#[derive(Default)]
pub(crate) struct ImageOnce {
    /// `true` after the first call.
    is_called: AtomicBool,
    /// `true` while the script is read, and once there is a result.
    is_started: AtomicBool,
    /// Result of the reading; `None` if the script has no image.
    result: OnceLock<Option<KeptImage>>,
}

/// Image with its room among all.
struct KeptImage {
    image: ScriptImage,
    _room: OwnedSemaphorePermit,
}

/// Reading of a script that was started. If it ends without a result, a later call starts it again.
struct Reading(Arc<ImageOnce>);

impl Drop for Reading {
    fn drop(&mut self) {
        if self.0.result.get().is_none() {
            self.0.is_started.store(false, Relaxed);
        }
    }
}

/// Reads scripts for their images, one at a time.
pub(crate) struct ImageReader {
    sandbox: Arc<Sandbox>,
    turn: Arc<Semaphore>,
    /// Bytes that further images may have.
    room: Arc<Semaphore>,
}

impl ImageReader {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox, turn: Arc::new(Semaphore::new(1)), room: Arc::new(Semaphore::new(MAX_TOTAL)) }
    }

    /// Returns the form of a script for the next call: its image if there is one, else its text.
    pub(super) fn source<'a>(
        &self,
        interpreter: &Arc<Interpreter>,
        prepared: &'a PreparedTool,
        (name, script): (&'a str, &'a Script),
        entry: EntryPoint,
        when: Option<&str>,
    ) -> ScriptSource<'a> {
        let once = &prepared.image;
        // With fuel there is no image: each call counts the fuel of its reading, so that it is the same in all of them.
        if let Some(image) = once.result.get() {
            if let Some(KeptImage { image, .. }) = image {
                return ScriptSource::Image(image);
            }
        } else if prepared.limits.fuel.is_none() && once.is_called.swap(true, Relaxed) {
            self.start(interpreter, prepared, (name, script), entry, when);
        }
        ScriptSource::Text(ScriptText { name, source: &script.source })
    }

    /// Starts the reading of a script, unless it was started or another script is being read.
    fn start(
        &self,
        interpreter: &Arc<Interpreter>,
        prepared: &PreparedTool,
        (name, script): (&str, &Script),
        entry: EntryPoint,
        when: Option<&str>,
    ) {
        let once = &prepared.image;
        if once.is_started.load(Relaxed) || !self.sandbox.has_extra_instances() {
            return;
        }
        let Ok(turn) = self.turn.clone().try_acquire_owned() else { return };
        if once.is_started.swap(true, Relaxed) {
            return;
        }
        let (sandbox, interpreter, room) = (self.sandbox.clone(), interpreter.clone(), self.room.clone());
        let (name, source, when) = (name.to_owned(), script.source.clone(), when.map(str::to_owned));
        let limits = Limits { deadline: prepared.limits.deadline.min(MAX_READING), ..prepared.limits };
        let reading = Reading(once.clone());
        tokio::spawn(async move {
            let text = ScriptText { name: &name, source: &source };
            // A fault of the system says nothing about the script.
            if let Ok(image) = sandbox.read_script(&interpreter, text, entry, when.as_deref(), &limits).await {
                let _ = reading.0.result.set(image.and_then(|image| kept(image, &room)));
            }
            drop(turn);
        });
    }
}

/// Keeps an image, if there is room for it.
fn kept(image: ScriptImage, room: &Arc<Semaphore>) -> Option<KeptImage> {
    let room = taken(image.size(), room)?;
    Some(KeptImage { image, _room: room })
}

/// Takes the room of an image; `None` if there is too little.
fn taken(size: usize, room: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    room.clone().try_acquire_many_owned(u32::try_from(size).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_the_room_of_all_together_and_give_theirs_back() {
        let room = Arc::new(Semaphore::new(MAX_TOTAL));
        let most = taken(MAX_TOTAL - 1, &room).unwrap();
        assert!(taken(2, &room).is_none() && taken(usize::MAX, &room).is_none());
        let last = taken(1, &room).unwrap();
        assert!(taken(1, &room).is_none());
        drop(most);
        assert!(taken(MAX_TOTAL, &room).is_none() && taken(MAX_TOTAL - 1, &room).is_some());
        drop(last);
        assert!(taken(MAX_TOTAL, &room).is_some());
    }

    #[test]
    fn a_reading_that_ends_without_a_result_can_start_again() {
        let once = Arc::new(ImageOnce::default());
        once.is_started.store(true, Relaxed);
        drop(Reading(once.clone()));
        assert!(!once.is_started.load(Relaxed), "the system refused it, or its thread ended");
        once.is_started.store(true, Relaxed);
        let reading = Reading(once.clone());
        assert!(reading.0.result.set(None).is_ok());
        drop(reading);
        assert!(once.is_started.load(Relaxed), "the script has no image");
    }
}
