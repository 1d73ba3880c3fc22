//! Label of a running call: it grows with each source that the call reads, and closes ways out by the rules about flows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::call::{Behavior, Denial};
use crate::flow::{ConversationLabels, Label, Labels, Mark, SharedLabel, Source, Way, Ways};
use crate::policy::{FlowPolicy, Rule};

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
    /// Labels of the conversation. They get each mark as soon as it is observed: another call can read what this one writes.
    conversation: Option<ConversationLabels>,
    /// `true` if rules may withhold the answer from the model.
    may_withhold: bool,
    /// `true` for a call that may leave values as soon as it runs.
    leaves_values: bool,
    /// `true` while nothing of the call is left but its answer, which a rule may withhold: then the conversation gets the marks only
    /// with the answer.
    defers: AtomicBool,
    /// `true` once the call may have found something that another one has left, and may find more until it ends.
    finds: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Label of all that the call was given and has read.
    label: Label,
    /// The same without the label of the conversation: the label of the answer itself. It is kept only if rules withhold answers.
    own: Label,
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
    /// Begins with the label of the context, and the label of the arguments. Before this, nothing is observed.
    pub(crate) fn begin(
        &self,
        policy: &Arc<FlowPolicy>,
        (context, arguments): (&Label, &Label),
        (ways, closable): (Ways, Ways),
        conversation: Option<ConversationLabels>,
        leaves_values: impl FnOnce() -> bool,
    ) {
        let may_withhold = conversation.is_some() && policy.may_withhold();
        let leaves_values = may_withhold && leaves_values();
        let (defers, finds, policy) = (AtomicBool::new(may_withhold), AtomicBool::default(), policy.clone());
        let begun = Begun { policy, ways, closable, conversation, may_withhold, leaves_values, defers, finds };
        let begun = self.begun.set(begun);
        debug_assert!(begun.is_ok(), "a call begins once");
        if !context.is_empty() {
            let mut state = self.state();
            state.label.join(context);
            state.decisive.join(context);
            self.update(&state);
            drop(state);
            self.share(context, |labels| &labels.seen);
        }
        if !arguments.is_empty() {
            self.join(arguments);
        }
    }

    /// Notes that the call runs: nobody has refused it.
    pub(crate) fn start(&self) {
        if self.begun.get().is_some_and(|begun| begun.leaves_values) {
            self.leave();
        }
        self.leave_sent();
    }

    /// Label of the answer itself, without the context of the call; empty if no rule withholds answers.
    pub(crate) fn own(&self) -> Label {
        self.state().own.clone()
    }

    /// Label of the answer for this conversation: with the context, unless it is known without.
    pub(crate) fn of_answer(&self) -> Label {
        if self.keeps_own() { self.own() } else { self.label() }
    }

    /// Notes that a call can send what it has read, so that it can come back by another one. From most hosts it would be untrusted.
    fn leave_sent(&self) {
        let sending = self.begun.get().filter(|begun| begun.may_withhold && begun.ways.has(Way::Net));
        let leaves = sending.is_some_and(|begun| {
            let state = self.state();
            state.own.confidentiality().next().is_some() || !state.own.is_empty() && begun.policy.labels.trusts_a_host()
        });
        if leaves {
            self.leave();
        }
    }

    /// Returns the rule that withholds the answer of the call from the model.
    pub(crate) fn withholding(&self) -> Option<Arc<Rule>> {
        let begun = self.begun.get().filter(|begun| begun.may_withhold)?;
        if begun.finds.load(Relaxed) {
            // What another call has left meanwhile.
            self.join_left();
        }
        begun.policy.withholding(&self.state().own).cloned()
    }

    /// Notes that the call leaves something else than its answer.
    pub(crate) fn leave(&self) {
        let Some(begun) = self.begun.get().filter(|begun| begun.defers.swap(false, Relaxed)) else { return };
        debug_assert!(begun.may_withhold);
        let state = self.state();
        let (label, own) = (state.label.clone(), state.own.clone());
        drop(state);
        self.share(&label, |labels| &labels.seen);
        self.share(&own, |labels| &labels.left);
    }

    /// Adds the label of the call to the conversation: the model gets the answer.
    pub(crate) fn disclose(&self) {
        let Some(begun) = self.begun.get().filter(|begun| begun.defers.swap(false, Relaxed)) else { return };
        debug_assert!(begun.may_withhold);
        let label = self.label();
        self.share(&label, |labels| &labels.seen);
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
        if let Source::Host(..) = source {
            // Another call may have sent it there.
            self.join_left();
        }
        self.add(&begun.policy.labels.marks(source), source);
    }

    /// Returns `true` if it matters which file the call reads.
    pub(crate) fn needs_path(&self) -> bool {
        let keeps_own = self.keeps_own();
        let is_full = |labels: &Labels| {
            let state = self.state();
            let is_full = |mark| state.label.is_full(mark) && (!keeps_own || state.own.is_full(mark));
            labels.of_files().iter().all(is_full)
        };
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
        self.join_seen();
        self.join_left();
    }

    /// Adds what the conversation has seen by now: the call waited for others, and reads nothing that they have left.
    pub(crate) fn join_seen(&self) {
        let Some(labels) = self.begun.get().and_then(|begun| begun.conversation.as_ref()) else { return };
        let seen = locked(&labels.seen);
        let mut state = self.state();
        if !state.label.covers(&seen) {
            state.label.join(&seen);
            state.decisive.join(&seen);
            self.update(&state);
        }
    }

    /// Adds what calls may have left by now.
    fn join_left(&self) {
        let Some(begun) = self.begun.get().filter(|begun| begun.may_withhold) else { return };
        begun.finds.store(true, Relaxed);
        if let Some(labels) = &begun.conversation {
            let left = locked(&labels.left).clone();
            self.join(&left);
        }
    }

    /// Adds the labels of a call that this one has made.
    pub(crate) fn join_call(&self, made: &Self) {
        let (label, own) = {
            let made = made.state();
            (made.label.clone(), made.own.clone())
        };
        self.join_parts(&label, &own);
    }

    /// Adds the label of something else that the call got.
    pub(crate) fn join(&self, other: &Label) {
        self.join_parts(other, other);
    }

    fn join_parts(&self, label: &Label, own: &Label) {
        let keeps_own = self.keeps_own();
        let mut state = self.state();
        let lacks = |known: &Label| !known.covers(label);
        if !(lacks(&state.label) || lacks(&state.decisive) || keeps_own && !state.own.covers(own)) {
            return;
        }
        state.label.join(label);
        state.decisive.join(label);
        if keeps_own {
            state.own.join(own);
        }
        self.update(&state);
        drop(state);
        self.share(label, |labels| &labels.seen);
        self.leave_own(own);
        self.leave_sent();
    }

    fn keeps_own(&self) -> bool {
        self.begun.get().is_some_and(|begun| begun.may_withhold)
    }

    fn add(&self, marks: &[Mark], source: Source<'_>) {
        let keeps_own = self.keeps_own();
        let mut state = self.state();
        let is_full = |mark| state.label.is_full(mark) && state.decisive.is_full(mark);
        if marks.iter().all(|mark| is_full(mark) && (!keeps_own || state.own.is_full(mark))) {
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
        if keeps_own {
            state.own.join(&read);
        }
        self.update(&state);
        drop(state);
        self.share(&read, |labels| &labels.seen);
        self.leave_own(&read);
        self.leave_sent();
    }

    /// Adds what the call itself has read to the label of all that calls may have left.
    fn leave_own(&self, read: &Label) {
        if self.keeps_own() {
            self.share(read, |labels| &labels.left);
        }
    }

    /// Adds to a label of the conversation, unless the call defers that.
    fn share(&self, read: &Label, to: impl FnOnce(&ConversationLabels) -> &SharedLabel) {
        let Some(begun) = self.begun.get().filter(|begun| !begun.defers.load(Relaxed)) else { return };
        if let Some(labels) = &begun.conversation {
            locked(to(labels)).join(read);
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
