//! Label of a running call: it grows with each source that the call reads, and closes ways out by the rules about flows.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::call::{Behavior, Denial};
use crate::flow::{Label, Labels, Mark, Source, Way, Ways};
use crate::policy::{FlowPolicy, Rule};

/// Label that the calls of a conversation share.
pub(crate) type SharedLabel = Arc<Mutex<Label>>;

/// Flow of one call, with the programs and hooks that run for it.
#[derive(Debug, Default)]
pub(crate) struct CallFlow {
    begun: OnceLock<Begun>,
    state: Mutex<State>,
    /// Ways out that are closed.
    closed: AtomicU8,
}

#[derive(Debug)]
struct Begun {
    policy: Arc<FlowPolicy>,
    /// Ways out of the tool.
    ways: Ways,
    /// Ways out that can be closed: more than those of the tool, because hooks have grants too.
    closable: Ways,
    /// Label of the conversation. It gets each mark as soon as it is observed: another call can read what this one writes.
    shared: Option<SharedLabel>,
}

#[derive(Debug, Default)]
struct State {
    /// Label of all that the call was given and has read.
    label: Label,
    /// The same without the integrity of responses. A call was begun before it read them, and nobody can be asked in its middle:
    /// a server that redirects it, or answers in parts, must not end it.
    decisive: Label,
    /// Rules about which somebody has agreed, each with the names of the data that were shown.
    agreed: Vec<(Arc<Rule>, Vec<String>)>,
}

impl State {
    fn has_agreed(&self, rule: &Arc<Rule>) -> bool {
        let mut of_rule = self.agreed.iter().filter(|(agreed, _)| Arc::ptr_eq(agreed, rule));
        let Some(flow) = rule.pattern().flow() else { return false };
        of_rule.any(|(_, names)| flow.names_in(&self.decisive).all(|name| names.iter().any(|agreed| agreed == name)))
    }
}

impl CallFlow {
    /// Begins with the label of all that the call was given. Before this, nothing is observed.
    pub(crate) fn begin(
        &self,
        policy: &Arc<FlowPolicy>,
        given: &Label,
        (ways, closable): (Ways, Ways),
        shared: Option<SharedLabel>,
    ) {
        let begun = self.begun.set(Begun { policy: policy.clone(), ways, closable, shared });
        debug_assert!(begun.is_ok(), "a call begins once");
        self.join(given);
    }

    /// Notes that somebody has agreed to what a rule asks about, for data of these names.
    pub(crate) fn agree(&self, rule: &Arc<Rule>, names: Vec<String>) {
        let mut state = self.state();
        state.agreed.push((rule.clone(), names));
        self.update(&state);
    }

    /// Label of the call so far.
    pub(crate) fn label(&self) -> Label {
        self.state().label.clone()
    }

    /// Judges the label and the ways out, unless one is empty.
    pub(crate) fn judge<T>(&self, judge: impl FnOnce(&Label, Ways) -> T) -> Option<T> {
        let ways = self.begun.get()?.ways;
        let state = self.state();
        (!state.label.is_empty() && !ways.is_empty()).then(|| judge(&state.label, ways))
    }

    /// Adds the marks of a source that the call reads.
    pub(crate) fn read(&self, source: Source<'_>) {
        let Some(begun) = self.begun.get() else { return };
        self.add(&begun.policy.labels.marks(source), source);
    }

    /// Returns `true` if it matters which file the call reads.
    pub(crate) fn needs_path(&self) -> bool {
        let is_full = |labels: &Labels| labels.of_files().iter().all(|mark| self.state().label.is_full(mark));
        self.labels().is_some_and(|labels| labels.has_paths() || !is_full(labels))
    }

    /// Returns `true` if another name can change the label of a file.
    pub(crate) fn needs_former_path(&self) -> bool {
        self.labels().is_some_and(Labels::has_paths)
    }

    /// Adds the marks of a file that the call reads; one without a path may be any.
    pub(crate) fn read_file(&self, path: Option<&Path>) {
        let Some(labels) = self.labels() else { return };
        let marks = path.map_or_else(|| labels.of_any_file(), |path| labels.marks(Source::File(path)));
        self.add(&marks, Source::File(path.unwrap_or(Path::new("?"))));
    }

    /// Adds the marks of a file or folder, with all below it, that the call gives another name.
    pub(crate) fn rename(&self, path: Option<&Path>) {
        let Some(labels) = self.labels() else { return };
        let marks = path.map_or_else(|| labels.of_any_file(), |path| labels.of_all_below(path));
        self.add(&marks, Source::File(path.unwrap_or(Path::new("?"))));
    }

    fn labels(&self) -> Option<&Labels> {
        self.begun.get().map(|begun| &begun.policy.labels)
    }

    /// Adds what the conversation has seen by now: the call reads something that another call may have stored.
    pub(crate) fn join_shared(&self) {
        let Some(shared) = self.begun.get().and_then(|begun| begun.shared.as_ref()) else { return };
        let shared = locked(shared);
        let mut state = self.state();
        if !state.label.covers(&shared) {
            state.label.join(&shared);
            state.decisive.join(&shared);
            self.update(&state);
        }
    }

    /// Adds the label of something else that the call got.
    pub(crate) fn join(&self, other: &Label) {
        let mut state = self.state();
        if state.label.covers(other) && state.decisive.covers(other) {
            return;
        }
        state.label.join(other);
        state.decisive.join(other);
        self.update(&state);
        drop(state);
        self.share(other);
    }

    fn add(&self, marks: &[Mark], source: Source<'_>) {
        let mut state = self.state();
        if marks.iter().all(|mark| state.label.is_full(mark) && state.decisive.is_full(mark)) {
            return;
        }
        let text = source.text();
        let mut read = Label::default();
        for mark in marks {
            read.mark(mark, &text);
            if !matches!((source, mark), (Source::Host(..), Mark::Untrusted)) {
                state.decisive.mark(mark, &text);
            }
        }
        state.label.join(&read);
        self.update(&state);
        drop(state);
        self.share(&read);
    }

    /// Adds to the label of the conversation.
    fn share(&self, read: &Label) {
        if let Some(shared) = self.begun.get().and_then(|begun| begun.shared.as_ref()) {
            locked(shared).join(read);
        }
    }

    /// Returns `true` if a way out is closed.
    pub(crate) fn closes(&self, way: Way) -> bool {
        Ways::of_bits(self.closed.load(Relaxed)).has(way)
    }

    /// Returns the refusal of a way out that is closed, with its reason for the model.
    pub(crate) fn refusal(&self, way: Way) -> Option<(Denial, String)> {
        if !self.closes(way) {
            return None;
        }
        let policy = &self.begun.get()?.policy;
        let state = self.state();
        let ways = Ways::default().with(way);
        let mut closing = policy.matching(&state.label, &state.decisive, ways);
        let rule = closing.find(|rule| !state.has_agreed(rule))?;
        let pattern = rule.pattern().as_str();
        let why = match rule.behavior() {
            Behavior::Ask => format!("`{pattern}` needs an approval, which a new call can ask for"),
            _ => format!("denied by an operator rule: `{pattern}`"),
        };
        Some((Denial { capability: pattern.to_owned(), flag: None }, why))
    }

    /// Closes the ways out that rules about flows do not leave open.
    fn update(&self, state: &State) {
        let Some(Begun { policy, closable, .. }) = self.begun.get().filter(|begun| begun.policy.has_rules()) else {
            return;
        };
        let closing = policy.matching(&state.label, &state.decisive, *closable).filter(|rule| !state.has_agreed(rule));
        let closed = closing.filter_map(|rule| rule.pattern().flow()).fold(0, |bits, flow| bits | flow.ways().bits());
        self.closed.store(Ways::of_bits(closed).both(*closable).bits(), Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
