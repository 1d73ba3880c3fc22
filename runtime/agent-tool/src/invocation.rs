//! State of one call between its events, and the records that each event adds.

mod end;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use toolcrib::Tool;
use toolcrib::call::{Behavior, Decision, Mutation, Part, Persisted};
use toolcrib::hook::HookPhase;
use toolcrib::observe::{Event, EventKind, HookEvent};
use toolcrib::tool::Interface;

use crate::redactor::Redactor;
use crate::vocabulary::{EventType, State, authority};
use crate::writer::RecordKind;
use crate::{PRODUCER, compact, record, time, tool_id};

/// Record with its kind.
pub(super) type Record = (RecordKind, Value);

/// State of a call that has not ended.
#[derive(Debug)]
pub(super) struct Invocation {
    id: String,
    native_call_id: String,
    name: String,
    tool: Option<ToolFacts>,
    state: State,
    transitions: Vec<Value>,
    created: SystemTime,
    started: Option<SystemTime>,
    /// Arguments as the model sent them.
    model_input: String,
    /// Redactor of this call, if it has sensitive values.
    redactor: Option<Arc<Redactor>>,
    inputs: Inputs,
    /// Number of changes to the arguments.
    version: usize,
    decisions: Vec<String>,
    hooks: Vec<String>,
    events: usize,
    mutations: usize,
    progress: usize,
    persistence: Option<String>,
    /// Records of hooks after the call, kept until the end shows if the tool answered.
    post_hooks: Vec<Value>,
    withheld: bool,
}

/// Arguments at each stage of the call, with their references.
#[derive(Debug, Default)]
struct Inputs {
    observable: Option<(Value, String)>,
    permission: Option<(Value, String)>,
    call: Option<(Value, String)>,
}

/// Facts about the tool that records state.
#[derive(Debug)]
struct ToolFacts {
    id: String,
    native_ids: Option<Value>,
    interface: Interface,
    sensitive: Vec<String>,
}

impl Invocation {
    /// Creates the state of a call at its first event.
    pub(super) fn new(event: &Event<'_>, redactor: &Redactor) -> Self {
        Self {
            id: event.invocation.to_owned(),
            native_call_id: redactor.word(event.call_id),
            name: redactor.word(event.name),
            tool: None,
            state: State::Planned,
            transitions: Vec::new(),
            created: event.at,
            started: None,
            model_input: String::new(),
            redactor: None,
            inputs: Inputs::default(),
            version: 0,
            decisions: Vec::new(),
            hooks: Vec::new(),
            events: 0,
            mutations: 0,
            progress: 0,
            persistence: None,
            post_hooks: Vec::new(),
            withheld: false,
        }
    }

    /// Applies an event and returns the records that it adds.
    pub(super) fn observe(&mut self, event: &Event<'_>, redactor: &Redactor) -> Vec<Record> {
        if let (None, Some(tool)) = (&self.tool, event.tool) {
            self.tool = Some(ToolFacts::new(tool));
            // Sensitive values of the model's text must not be repeated in any record.
            self.hide(|call| serde_json::from_str(&call.model_input).unwrap_or_default(), redactor);
        }
        if let EventKind::Authorizing(value) | EventKind::Started(value) = event.kind
            && self.version > 0
        {
            self.hide(|_| value.clone(), redactor);
        }
        let own = self.redactor.clone();
        let redactor = own.as_deref().unwrap_or(redactor);
        let at = event.at;
        match &event.kind {
            EventKind::Received(text) => {
                self.model_input = (*text).to_owned();
                self.enter(State::Planned, at);
                vec![self.event(EventType::Planned, at, json!({ "name": self.name, "bytes": text.len() }))]
            }
            EventKind::Resolved => {
                self.enter(State::Selected, at);
                vec![self.event(EventType::Selected, at, json!({ "name": self.name }))]
            }
            EventKind::Validated => {
                self.enter(State::ArgumentsReady, at);
                vec![self.event(EventType::ArgumentsReady, at, Value::Null)]
            }
            EventKind::Observable(value) => {
                self.inputs.observable = Some((redactor.value(value), self.input_ref(self.version)));
                Vec::new()
            }
            EventKind::HookRan(hooked) => self.hooked(hooked, at, redactor),
            EventKind::Mutated(mutation) => vec![self.mutated(mutation, at, redactor)],
            EventKind::Authorizing(value) => {
                self.inputs.permission = Some((redactor.value(value), self.input_ref(self.version)));
                Vec::new()
            }
            EventKind::ApprovalRequested(decision) => {
                self.enter(State::AwaitingApproval, at);
                let record = self.decided(decision, at, redactor);
                let data = json!({ "decision_id": record.1["decision_id"] });
                vec![
                    record,
                    self.event(EventType::PermissionRequested, at, data),
                    self.progress("waiting_for_permission", at, Value::Null),
                ]
            }
            EventKind::Decided(decision) => {
                if decision.behavior == Behavior::Allow {
                    self.enter(State::Approved, at);
                }
                let record = self.decided(decision, at, redactor);
                let data = json!({ "decision_id": record.1["decision_id"], "behavior": decision.behavior });
                vec![record, self.event(EventType::PermissionDecided, at, data)]
            }
            EventKind::Queued => {
                self.enter(State::Queued, at);
                vec![self.event(EventType::Queued, at, Value::Null), self.progress("queued", at, Value::Null)]
            }
            EventKind::Started(value) => {
                self.inputs.call = Some((redactor.value(value), self.input_ref(self.version)));
                self.started = Some(at);
                self.enter(State::Running, at);
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
            EventKind::Persisted(persisted) => self.persisted(persisted, at),
            EventKind::Ended(result) => self.ended(result, at, redactor),
            // Previews and mappings have no record in the standard.
            _ => Vec::new(),
        }
    }

    /// Returns the record of a call that has not ended.
    pub(super) fn unfinished(&self, redactor: &Redactor) -> Record {
        self.invocation(None, self.redactor.as_deref().unwrap_or(redactor))
    }

    /// Enters a state.
    fn enter(&mut self, state: State, at: SystemTime) {
        self.state = state;
        self.transitions.push(json!({ "status": state, "at": time(at) }));
    }

    /// Returns the arguments' reference after a number of changes.
    fn input_ref(&self, version: usize) -> String {
        format!("{}/input/{version}", self.id)
    }

    /// Adds the sensitive values of arguments to the call's redactor, so that records mask them wherever they are repeated.
    fn hide(&mut self, arguments: impl FnOnce(&Self) -> Value, redactor: &Redactor) {
        let Some(tool) = self.tool.as_ref().filter(|tool| !tool.sensitive.is_empty()) else { return };
        let redactor = self.redactor.as_deref().unwrap_or(redactor);
        self.redactor = Some(Arc::new(redactor.without(&tool.sensitive, &arguments(self))));
    }

    fn tool_id(&self) -> String {
        self.tool.as_ref().map_or_else(|| format!("unknown:{}", self.name), |tool| tool.id.clone())
    }

    fn event(&mut self, kind: EventType, at: SystemTime, data: Value) -> Record {
        self.events += 1;
        let event = record(json!({
            "event_id": format!("{}/event/{}", self.id, self.events),
            "event_type": kind,
            "source": PRODUCER,
            "subject": self.id,
            "time": time(at),
            "invocation_id": self.id,
            "tool_id": self.tool.as_ref().map(|tool| &tool.id),
            "data": data,
        }));
        (RecordKind::Event, event)
    }

    fn progress(&mut self, status: &str, at: SystemTime, more: Value) -> Record {
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
        (RecordKind::Progress, progress)
    }

    fn hooked(&mut self, hooked: &HookEvent<'_>, at: SystemTime, redactor: &Redactor) -> Vec<Record> {
        let (running, hook_event, event) = match hooked.phase {
            HookPhase::Before => (State::PreHooksRunning, "pre_tool_use", EventType::PreHookCompleted),
            HookPhase::After => (State::PostHooksRunning, "post_tool_use", EventType::PostHookCompleted),
        };
        if self.state != running {
            self.enter(running, at);
        }
        let id = format!("{}/hook/{}", self.id, self.hooks.len() + 1);
        let reason = hooked.reason.map(|reason| redactor.text(reason).text);
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
        let mut records =
            vec![self.event(event, at, json!({ "hook_id": id, "name": hooked.hook, "said": hooked.verdict }))];
        match hooked.phase {
            HookPhase::Before => records.push((RecordKind::Hook, hook)),
            HookPhase::After => self.post_hooks.push(hook),
        }
        if stops && hooked.phase == HookPhase::After {
            self.withheld = true;
            records.push(self.event(EventType::Redacted, at, json!({ "hook_id": id })));
        }
        records
    }

    fn mutated(&mut self, mutation: &Mutation, at: SystemTime, redactor: &Redactor) -> Record {
        let (from, to) = (self.input_ref(self.version), self.input_ref(self.version + 1));
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
            "reason": mutation.reason.as_ref().map(|reason| redactor.text(reason).text),
            "created_at": time(at),
        }));
        (RecordKind::InputMutation, mutated)
    }

    fn decided(&mut self, decision: &Decision, at: SystemTime, redactor: &Redactor) -> Record {
        let id = format!("{}/decision/{}", self.id, self.decisions.len() + 1);
        let (source, kind) = authority(decision.reason);
        let rests_on = decision.rests_on.as_ref().map(|rests_on| redactor.text(rests_on).text);
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
        (RecordKind::PermissionDecision, decided)
    }

    fn persisted(&mut self, persisted: &Persisted, at: SystemTime) -> Vec<Record> {
        let id = format!("{}/persistence", self.id);
        // The operator's limit may be lower.
        let limit = self.tool.as_ref().map(|tool| tool.interface.result.max_inline_chars.value);
        let data = json!({ "decision_id": id, "strategy": persisted.strategy, "bytes": persisted.bytes });
        let decided = record(json!({
            "decision_id": id,
            "invocation_id": self.id,
            "result_id": self.result_id(),
            "strategy": persisted.strategy,
            "threshold": limit.map(|limit| json!({ "at_most_chars": limit })),
            "original_size_bytes": persisted.bytes,
            "preview_size_bytes": persisted.shown_bytes,
            "persisted_ref": persisted.reference.as_ref().map(|reference| json!({ "ref": reference, "kind": "toolcrib-result" })),
            "redaction_state": "none",
            "reason": "longer than the maximum length of a result that a model gets in full",
            "created_at": time(at),
        }));
        self.persistence = Some(id);
        vec![(RecordKind::ResultPersistence, decided), self.event(EventType::Persisted, at, data)]
    }

    fn result_id(&self) -> String {
        format!("{}/result", self.id)
    }
}

impl ToolFacts {
    fn new(tool: &Tool) -> Self {
        Self {
            id: tool_id(tool),
            native_ids: tool.interface.identity.native_ids.value.clone(),
            interface: tool.interface.clone(),
            sensitive: tool.sensitive_names(),
        }
    }
}
