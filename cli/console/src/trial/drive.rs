//! The course of a tried call: it runs in a session of its own until it has a result, or until it is stopped.

use std::sync::Arc;

use toolcrib::Runtime;
use toolcrib::ToolResult;
use toolcrib_sources::calls::Calls;

use super::desk::{QuestionKind, Trial, Trials};
use super::gate::Gate;
use super::outcome::Shown;

/// Maximum bytes of files that a call shows while it runs and that are kept.
const MAX_FILES: usize = 1 << 20;

/// Drives a call to its end, and keeps what is shown of its result.
pub(super) async fn drive(trials: Trials, trial: Arc<Trial>, runtime: Arc<Runtime>) {
    // Compiled ahead, so that this takes no call time; the call itself reports a program that cannot be compiled.
    tokio::select! {
        _ = async { (runtime.prepare(&trial.call.name).await, runtime.prepare_hooks().await) } => {}
        () = trial.stop.cancelled() => {}
    }
    // A session of its own: the gate of another call would not stop this one.
    let session = runtime.full_session();
    session.watched_by(Arc::new(Gate::new(trials.clone(), trial.clone())));
    let mut calls = Calls::start(&session, vec![trial.call.clone()]);
    let mut is_stopped = false;
    let result = loop {
        tokio::select! {
            biased;
            () = trial.stop.cancelled(), if !is_stopped => {
                calls.cancel();
                trial.cancelled.cancel();
                is_stopped = true;
            }
            result = calls.next() => break result,
        }
    };
    // A call that is held beyond its result never goes on: what holds it is kept.
    let is_held = trial.state().questions.iter().any(|question| matches!(question.kind, QuestionKind::Held(_)));
    if !is_held {
        session.end().await;
    }
    trials.invocations().retain(|_, of| !Arc::ptr_eq(of, &trial));
    let parts = std::mem::take(&mut trial.state().shown).into_kept(None, &mut { MAX_FILES });
    let shown = result.as_ref().map(|result: &ToolResult| Shown::of(result, &parts, &runtime)).unwrap_or_default();
    trial.change(|state| {
        state.questions.retain(|question| matches!(question.kind, QuestionKind::Held(_)));
        state.outcome = Some(Arc::new(shown));
        state.runtime = None;
    });
}
