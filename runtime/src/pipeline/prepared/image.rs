//! Image of a script, made at most once and beside its calls: the second call starts it, because a program that makes one
//! call would gain nothing. It is made from the source alone, so no call can leave anything in it for another.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::sandbox::{EntryPoint, Interpreter, Sandbox, ScriptImage, ScriptSource, ScriptText};
use crate::tool::{Limits, Script};

use super::PreparedTool;

/// Maximum time for the reading of a script.
const MAX_READING: Duration = Duration::from_secs(1);

/// Image of one script.
#[derive(Default)]
pub(crate) struct ImageOnce {
    /// `true` after the first call.
    is_called: AtomicBool,
    /// `true` if the reading was started.
    is_started: AtomicBool,
    /// Result of the reading; `None` if the script has no image.
    result: OnceLock<Option<ScriptImage>>,
}

/// Reads scripts for their images, one at a time.
pub(crate) struct ImageReader {
    sandbox: Arc<Sandbox>,
    turn: Arc<Semaphore>,
}

impl ImageReader {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox, turn: Arc::new(Semaphore::new(1)) }
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
        if let Some(image) = once.result.get() {
            if let Some(image) = image {
                return ScriptSource::Image(image);
            }
            // Each call counts the fuel of its reading, so that it is the same in all of them.
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
        let (sandbox, interpreter, once) = (self.sandbox.clone(), interpreter.clone(), once.clone());
        let (name, source, when) = (name.to_owned(), script.source.clone(), when.map(str::to_owned));
        let limits = Limits { deadline: prepared.limits.deadline.min(MAX_READING), ..prepared.limits };
        tokio::spawn(async move {
            let text = ScriptText { name: &name, source: &source };
            let image = sandbox.read_script(&interpreter, text, entry, when.as_deref(), &limits).await;
            let _ = once.result.set(image);
            drop(turn);
        });
    }
}
