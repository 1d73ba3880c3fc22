//! One call, from what is told of its way to its records. It keeps what a later record links to.

mod end;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::call::{Behavior, Decision, Mutation, Part, Persisted};
use crate::hook::HookPhase;
use crate::observe::{Event, EventKind, HookEvent};
use crate::tool::{Interface, Tool};

use super::shown::Shown;
use super::word::{EventType, State, authority};
use super::writer::Kind;
use super::{compact, record, time, tool_id};

/// A record and the file that it goes to.
pub(super) type Line = (Kind, Value);

/// EventKind is known of a call that has not ended.
#[derive(Debug)]
pub(super) struct Call {
    id: String,
    native_call_id: String,
    name: String,
    tool: Option<Known>,
    state: State,
    transitions: Vec<Value>,
    created: SystemTime,
    started: Option<SystemTime>,
    /// EventKind the model sent.
    model: String,
    /// EventKind is masked, where the call holds sensitive values.
    own: Option<Arc<Shown>>,
    inputs: Inputs,
    /// How often the arguments have been changed.
    version: usize,
    decisions: Vec<String>,
    hooks: Vec<String>,
    events: usize,
    mutations: usize,
    progress: usize,
    persistence: Option<String>,
    /// The hooks that were heard about the answer: whether the tool gave one is known at the end.
    heard_after: Vec<Value>,
    withheld: bool,
}

/// The arguments as they stood when they were looked at, each with its reference.
#[derive(Debug, Default)]
struct Inputs {
    observable: Option<(Value, String)>,
    permission: Option<(Value, String)>,
    call: Option<(Value, String)>,
}

/// EventKind the records say of the tool.
#[derive(Debug)]
struct Known {
    id: String,
    native_ids: Option<Value>,
    interface: Interface,
    sensitive: Vec<String>,
}

impl Call {
    /// A call of which this is the first event.
    pub(super) fn new(event: &Event<'_>, shown: &Shown) -> Self {
        Self {
            id: event.invocation.to_owned(),
            native_call_id: shown.word(event.call_id),
            name: shown.word(event.name),
            tool: None,
            state: State::Planned,
            transitions: Vec::new(),
            created: event.at,
            started: None,
            model: String::new(),
            own: None,
            inputs: Inputs::default(),
            version: 0,
            decisions: Vec::new(),
            hooks: Vec::new(),
            events: 0,
            mutations: 0,
            progress: 0,
            persistence: None,
            heard_after: Vec::new(),
            withheld: false,
        }
    }

    /// EventKind the records gain by an event.
    pub(super) fn note(&mut self, event: &Event<'_>, shown: &Shown) -> Vec<Line> {
        if let (None, Some(tool)) = (&self.tool, event.tool) {
            self.tool = Some(Known::new(tool));
            // Whatever comes of the call, nobody repeats them in a record.
            self.hide(|call| serde_json::from_str(&call.model).unwrap_or_default(), shown);
        }
        if let EventKind::Authorizing(value) | EventKind::Started(value) = event.kind
            && self.version > 0
        {
            self.hide(|_| value.clone(), shown);
        }
        let own = self.own.clone();
        let shown = own.as_deref().unwrap_or(shown);
        let at = event.at;
        match &event.kind {
            EventKind::Received(text) => {
                self.model = (*text).to_owned();
                self.turn(State::Planned, at);
                vec![self.event(EventType::Planned, at, json!({ "name": self.name, "bytes": text.len() }))]
            }
            EventKind::Resolved => {
                self.turn(State::Selected, at);
                vec![self.event(EventType::Selected, at, json!({ "name": self.name }))]
            }
            EventKind::Validated => {
                self.turn(State::ArgumentsReady, at);
                vec![self.event(EventType::ArgumentsReady, at, Value::Null)]
            }
            EventKind::Observable(value) => {
                self.inputs.observable = Some((shown.value(value), self.input(self.version)));
                Vec::new()
            }
            EventKind::HookRan(hooked) => self.hooked(hooked, at, shown),
            EventKind::Mutated(mutation) => vec![self.mutated(mutation, at, shown)],
            EventKind::Authorizing(value) => {
                self.inputs.permission = Some((shown.value(value), self.input(self.version)));
                Vec::new()
            }
            EventKind::ApprovalRequested(decision) => {
                self.turn(State::AwaitingApproval, at);
                let id = self.decided(decision, at, shown);
                let data = json!({ "decision_id": id.1["decision_id"] });
                vec![
                    id,
                    self.event(EventType::Asked, at, data),
                    self.progress("waiting_for_permission", at, Value::Null),
                ]
            }
            EventKind::Decided(decision) => {
                if decision.behavior == Behavior::Allow {
                    self.turn(State::Approved, at);
                }
                let line = self.decided(decision, at, shown);
                let data = json!({ "decision_id": line.1["decision_id"], "behavior": decision.behavior });
                vec![line, self.event(EventType::Decided, at, data)]
            }
            EventKind::Queued => {
                self.turn(State::Queued, at);
                vec![self.event(EventType::Queued, at, Value::Null), self.progress("queued", at, Value::Null)]
            }
            EventKind::Started(value) => {
                self.inputs.call = Some((shown.value(value), self.input(self.version)));
                self.started = Some(at);
                self.turn(State::Running, at);
                vec![self.event(EventType::Started, at, Value::Null), self.progress("started", at, Value::Null)]
            }
            EventKind::Progress { bytes } => {
                let more = json!({ "bytes_written": bytes });
                vec![self.event(EventType::Progress, at, more.clone()), self.progress("running", at, more)]
            }
            EventKind::Part { number, part } => {
                let mut more = json!({ "part": number });
                if let Part::Progress { done, total: Some(total @ 1..) } = part {
                    more["percent"] = json!(((*done).min(*total) as f64 / *total as f64 * 100.0).round());
                }
                vec![self.event(EventType::Progress, at, more.clone()), self.progress("running", at, more)]
            }
            EventKind::Preview(_) | EventKind::Mapped => Vec::new(),
            EventKind::Persisted(persisted) => self.persisted(persisted, at),
            EventKind::Ended(result) => self.ended(result, at, shown),
        }
    }

    /// The invocation of a call of which nobody told the end.
    pub(super) fn left(&self, shown: &Shown) -> Line {
        self.invocation(None, self.own.as_deref().unwrap_or(shown))
    }

    fn turn(&mut self, state: State, at: SystemTime) {
        self.state = state;
        self.transitions.push(json!({ "status": state, "at": time(at) }));
    }

    /// The reference of the arguments after so many changes.
    fn input(&self, version: usize) -> String {
        format!("{}/input/{version}", self.id)
    }

    /// Remembers the sensitive values of arguments, so that no text that repeats them stands in a record.
    fn hide(&mut self, arguments: impl FnOnce(&Self) -> Value, shown: &Shown) {
        let Some(tool) = self.tool.as_ref().filter(|tool| !tool.sensitive.is_empty()) else { return };
        let shown = self.own.as_deref().unwrap_or(shown);
        self.own = Some(Arc::new(shown.without(&tool.sensitive, &arguments(self))));
    }

    fn tool_id(&self) -> String {
        self.tool.as_ref().map_or_else(|| format!("unknown:{}", self.name), |tool| tool.id.clone())
    }

    fn event(&mut self, kind: EventType, at: SystemTime, data: Value) -> Line {
        self.events += 1;
        let event = record(json!({
            "event_id": format!("{}/event/{}", self.id, self.events),
            "event_type": kind,
            "source": super::PRODUCER,
            "subject": self.id,
            "time": time(at),
            "invocation_id": self.id,
            "tool_id": self.tool.as_ref().map(|tool| &tool.id),
            "data": data,
        }));
        (Kind::Event, event)
    }

    fn progress(&mut self, status: &str, at: SystemTime, more: Value) -> Line {
        self.progress += 1;
        let elapsed = at.duration_since(self.created).unwrap_or_default().as_millis();
        let mut progress = record(json!({
            "progress_id": format!("{}/progress/{}", self.id, self.progress),
            "invocation_id": self.id,
            "sequence": self.progress,
            "status": status,
            "elapsed_ms": u64::try_from(elapsed).unwrap_or(u64::MAX),
            "timestamp": time(at),
        }));
        if let (Value::Object(progress), Value::Object(more)) = (&mut progress, more) {
            progress.extend(more);
        }
        (Kind::Progress, progress)
    }

    fn hooked(&mut self, hooked: &HookEvent<'_>, at: SystemTime, shown: &Shown) -> Vec<Line> {
        let (running, hook_event, event) = match hooked.phase {
            HookPhase::Before => (State::PreHooksRunning, "pre_tool_use", EventType::HookedBefore),
            HookPhase::After => (State::PostHooksRunning, "post_tool_use", EventType::HookedAfter),
        };
        if self.state != running {
            self.turn(running, at);
        }
        let id = format!("{}/hook/{}", self.id, self.hooks.len() + 1);
        let reason = hooked.reason.map(|reason| shown.text(reason).text);
        let stops = matches!(hooked.verdict, "block" | "failed");
        let behavior = match (hooked.phase, hooked.verdict) {
            (HookPhase::Before, "allow") => Some("allow"),
            (HookPhase::Before, _) if stops => Some("deny"),
            _ => None,
        };
        let hook = record(json!({
            "hook_id": id,
            "hook_event": hook_event,
            "invocation_id": self.id,
            "tool_id": self.tool_id(),
            "name": hooked.hook,
            "outputs": [compact(json!({ "type": hooked.verdict, "reason": reason }))],
            "permission_result": behavior.map(|behavior| json!({ "behavior": behavior })),
            "stop": stops.then(|| json!({ "reason": reason })),
            "ended_at": time(at),
        }));
        self.hooks.push(id.clone());
        let mut lines =
            vec![self.event(event, at, json!({ "hook_id": id, "name": hooked.hook, "said": hooked.verdict }))];
        match hooked.phase {
            HookPhase::Before => lines.push((Kind::Hook, hook)),
            HookPhase::After => self.heard_after.push(hook),
        }
        if stops && hooked.phase == HookPhase::After {
            self.withheld = true;
            lines.push(self.event(EventType::Redacted, at, json!({ "hook_id": id })));
        }
        lines
    }

    fn mutated(&mut self, mutation: &Mutation, at: SystemTime, shown: &Shown) -> Line {
        let (from, to) = (self.input(self.version), self.input(self.version + 1));
        self.version += 1;
        self.mutations += 1;
        let mutated = record(json!({
            "mutation_id": format!("{}/mutation/{}", self.id, self.mutations),
            "invocation_id": self.id,
            "source_type": "hook",
            "source_ref": self.hooks.last(),
            "source_name": mutation.by,
            "mutation_source": mutation.mutation_source,
            "from_input_ref": from,
            "to_input_ref": to,
            "changed_fields": mutation.fields,
            "reason": mutation.reason.as_ref().map(|reason| shown.text(reason).text),
            "created_at": time(at),
        }));
        (Kind::InputMutation, mutated)
    }

    fn decided(&mut self, decision: &Decision, at: SystemTime, shown: &Shown) -> Line {
        let id = format!("{}/decision/{}", self.id, self.decisions.len() + 1);
        let (source, kind) = authority(decision.reason);
        let rests_on = decision.rests_on.as_ref().map(|rests_on| shown.text(rests_on).text);
        let decided = record(json!({
            "decision_id": id,
            "invocation_id": self.id,
            "behavior": decision.behavior,
            "source": source,
            "reason": compact(json!({ "type": kind, "code": decision.reason, "message": rests_on })),
            "rule_refs": rests_on.iter().collect::<Vec<_>>(),
            "permission_input_ref": self.inputs.permission.as_ref().map(|(_, reference)| reference),
            "user_modified": false,
            "decided_at": time(at),
        }));
        self.decisions.push(id);
        (Kind::PermissionDecision, decided)
    }

    fn persisted(&mut self, persisted: &Persisted, at: SystemTime) -> Vec<Line> {
        let id = format!("{}/persistence", self.id);
        // An operator may have named fewer.
        let most = self.tool.as_ref().map(|tool| tool.interface.result.max_inline_chars.value);
        let data = json!({ "decision_id": id, "strategy": persisted.strategy, "bytes": persisted.bytes });
        let decided = record(json!({
            "decision_id": id,
            "invocation_id": self.id,
            "result_id": self.result_id(),
            "strategy": persisted.strategy,
            "threshold": most.map(|most| json!({ "at_most_chars": most })),
            "original_size_bytes": persisted.bytes,
            "preview_size_bytes": persisted.shown_bytes,
            "persisted_ref": persisted.reference.as_ref().map(|reference| json!({ "ref": reference, "kind": "toolcrib-result" })),
            "redaction_state": "none",
            "reason": "longer than the most characters that a model is given whole",
            "created_at": time(at),
        }));
        self.persistence = Some(id);
        vec![(Kind::ResultPersistence, decided), self.event(EventType::Persisted, at, data)]
    }

    fn result_id(&self) -> String {
        format!("{}/result", self.id)
    }
}

impl Known {
    fn new(tool: &Tool) -> Self {
        Self {
            id: tool_id(tool),
            native_ids: tool.interface.identity.native_ids.value.clone(),
            interface: tool.interface.clone(),
            sensitive: tool.sensitive_names(),
        }
    }
}
