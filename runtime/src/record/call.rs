//! One call, from what is told of its way to its records. It keeps what a later record links to.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::call::{Behavior, Decision, Mutation, Persisted, ToolResult, Written};
use crate::error::{Outcome, ToolError};
use crate::hook::Moment;
use crate::observe::{Event, Hooked, What};
use crate::tool::{Interface, Tool, Use};

use super::shown::{Shown, digest};
use super::word::{Circumstances, End, EventType, State, authority};
use super::writer::Kind;
use super::{SCHEDULER, compact, record, time, tool_id};

/// What the host says of a call that the failure of another has ended.
const BY_SIBLING: &str = "failed, and this call";

/// A record and the file that it goes to.
pub(super) type Line = (Kind, Value);

/// What is known of a call that has not ended.
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
    /// What the model sent.
    model: String,
    /// What is masked, where the call holds sensitive values.
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

/// What the records say of the tool.
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

    /// What the records gain by an event.
    pub(super) fn note(&mut self, event: &Event<'_>, shown: &Shown) -> Vec<Line> {
        if let (None, Some(tool)) = (&self.tool, event.tool) {
            self.tool = Some(Known::new(tool));
            // Whatever comes of the call, nobody repeats them in a record.
            self.hide(|call| serde_json::from_str(&call.model).unwrap_or_default(), shown);
        }
        if let What::Judging(value) | What::Started(value) = event.what
            && self.version > 0
        {
            self.hide(|_| value.clone(), shown);
        }
        let own = self.own.clone();
        let shown = own.as_deref().unwrap_or(shown);
        let at = event.at;
        match &event.what {
            What::Received(text) => {
                self.model = (*text).to_owned();
                self.turn(State::Planned, at);
                vec![self.event(EventType::Planned, at, json!({ "name": self.name, "bytes": text.len() }))]
            }
            What::Resolved => {
                self.turn(State::Selected, at);
                vec![self.event(EventType::Selected, at, json!({ "name": self.name }))]
            }
            What::Validated => {
                self.turn(State::ArgumentsReady, at);
                vec![self.event(EventType::ArgumentsReady, at, Value::Null)]
            }
            What::Observable(value) => {
                self.inputs.observable = Some((shown.value(value), self.input(self.version)));
                Vec::new()
            }
            What::Hooked(hooked) => self.hooked(hooked, at, shown),
            What::Mutated(mutation) => vec![self.mutated(mutation, at, shown)],
            What::Judging(value) => {
                self.inputs.permission = Some((shown.value(value), self.input(self.version)));
                Vec::new()
            }
            What::Asking(decision) => {
                self.turn(State::AwaitingApproval, at);
                let id = self.decided(decision, at, shown);
                let data = json!({ "decision_id": id.1["decision_id"] });
                vec![
                    id,
                    self.event(EventType::Asked, at, data),
                    self.progress("waiting_for_permission", at, Value::Null),
                ]
            }
            What::Decided(decision) => {
                if decision.behavior == Behavior::Allow {
                    self.turn(State::Approved, at);
                }
                let line = self.decided(decision, at, shown);
                let data = json!({ "decision_id": line.1["decision_id"], "behavior": decision.behavior });
                vec![line, self.event(EventType::Decided, at, data)]
            }
            What::Queued => {
                self.turn(State::Queued, at);
                vec![self.event(EventType::Queued, at, Value::Null), self.progress("queued", at, Value::Null)]
            }
            What::Started(value) => {
                self.inputs.call = Some((shown.value(value), self.input(self.version)));
                self.started = Some(at);
                self.turn(State::Running, at);
                vec![self.event(EventType::Started, at, Value::Null), self.progress("started", at, Value::Null)]
            }
            What::Progress { bytes } => {
                let more = json!({ "bytes_written": bytes });
                vec![self.event(EventType::Progress, at, more.clone()), self.progress("running", at, more)]
            }
            What::Mapped => Vec::new(),
            What::Persisted(persisted) => self.persisted(persisted, at),
            What::Ended(result) => self.ended(result, at, shown),
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

    fn hooked(&mut self, hooked: &Hooked<'_>, at: SystemTime, shown: &Shown) -> Vec<Line> {
        let (running, hook_event, event) = match hooked.moment {
            Moment::Before => (State::PreHooksRunning, "pre_tool_use", EventType::HookedBefore),
            Moment::After => (State::PostHooksRunning, "post_tool_use", EventType::HookedAfter),
        };
        if self.state != running {
            self.turn(running, at);
        }
        let id = format!("{}/hook/{}", self.id, self.hooks.len() + 1);
        let reason = hooked.reason.map(|reason| shown.text(reason).text);
        let stops = matches!(hooked.said, "block" | "failed");
        let behavior = match (hooked.moment, hooked.said) {
            (Moment::Before, "allow") => Some("allow"),
            (Moment::Before, _) if stops => Some("deny"),
            _ => None,
        };
        let hook = record(json!({
            "hook_id": id,
            "hook_event": hook_event,
            "invocation_id": self.id,
            "tool_id": self.tool_id(),
            "name": hooked.hook,
            "outputs": [compact(json!({ "type": hooked.said, "reason": reason }))],
            "permission_result": behavior.map(|behavior| json!({ "behavior": behavior })),
            "stop": stops.then(|| json!({ "reason": reason })),
            "ended_at": time(at),
        }));
        self.hooks.push(id.clone());
        let mut lines = vec![self.event(event, at, json!({ "hook_id": id, "name": hooked.hook, "said": hooked.said }))];
        match hooked.moment {
            Moment::Before => lines.push((Kind::Hook, hook)),
            Moment::After => self.heard_after.push(hook),
        }
        if stops && hooked.moment == Moment::After {
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
        let most = self.tool.as_ref().map(|tool| tool.interface.result.max_inline_chars.value);
        let data = json!({ "decision_id": id, "strategy": persisted.strategy, "bytes": persisted.bytes });
        let decided = record(json!({
            "decision_id": id,
            "invocation_id": self.id,
            "result_id": self.result_id(),
            "strategy": persisted.strategy,
            "threshold": most.map(|most| json!({ "max_inline_chars": most })),
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

    fn ended(&mut self, result: &ToolResult, at: SystemTime, shown: &Shown) -> Vec<Line> {
        // No tool's own words are in an error of this outcome.
        let by_sibling = |error: &ToolError| error.outcome == Outcome::Cancelled && error.message.contains(BY_SIBLING);
        let circumstances = Circumstances {
            found: self.tool.is_some(),
            started: self.started.is_some(),
            by_sibling: result.outcome.as_ref().is_err_and(by_sibling),
            decision: result.receipt.decision.as_ref(),
        };
        let end = End::of(result.receipt.outcome, &circumstances);
        self.turn(end.state, at);
        let mut lines = vec![self.result(result, &end, at, shown)];
        for mut hook in std::mem::take(&mut self.heard_after) {
            if result.receipt.written.is_none() {
                hook["hook_event"] = json!("post_tool_use_failure");
            }
            lines.push((Kind::Hook, hook));
        }
        if self.started.is_some() {
            let (status, more) = match end.state {
                State::Succeeded => ("completed", json!({ "percent": 100 })),
                State::Canceled => ("canceled", Value::Null),
                _ => ("failed", Value::Null),
            };
            lines.push(self.progress(status, at, more));
        }
        let data = json!({ "result_id": self.result_id(), "status": end.status });
        lines.push(self.event(EventType::ResultCreated, at, data));
        lines.push(self.event(end.event(), at, json!({ "outcome": result.receipt.outcome })));
        lines.push(self.invocation(Some((result, at)), shown));
        lines
    }

    fn result(&self, result: &ToolResult, end: &End, at: SystemTime, shown: &Shown) -> Line {
        let content = result.content();
        let told = shown.text(&content);
        let structured = match &told.cut {
            None => {
                serde_json::from_str::<Value>(&told.text).ok().filter(|value| value.is_object() || value.is_array())
            }
            Some(_) => None,
        };
        let error = end.error.map(|(class, help)| {
            json!({
                "error_code": result.receipt.outcome,
                "error_class": class,
                "message": result.outcome.as_ref().err().map(|error| shown.text(&error.message).text),
                "recoverability": help,
            })
        });
        let (bytes, digest) = told.cut.unzip();
        let answered = result.outcome.as_ref().ok().and(structured.as_ref());
        let named = |field: &str| answered.and_then(|answer| answer.get(field)).filter(|refs| is_refs(refs)).cloned();
        let mut artifacts = self.touched(result, |r#use| r#use == Use::Write);
        artifacts.extend(named("artifact_refs").and_then(|refs| refs.as_array().cloned()).unwrap_or_default());
        let mut resources = self.touched(result, |r#use| r#use != Use::Write);
        resources.extend(named("resource_refs").and_then(|refs| refs.as_array().cloned()).unwrap_or_default());
        let kept = result.receipt.persisted.as_ref().and_then(|persisted| persisted.reference.as_ref());
        resources.extend(kept.map(|reference| json!({ "kind": "toolcrib-result", "ref": reference })));
        let masked = told.masked || self.withheld;
        let line = record(json!({
            "result_id": self.result_id(),
            "invocation_id": self.id,
            "status": end.status,
            "is_error": result.is_error(),
            "model_facing_content": [compact(json!({ "type": "text", "text": told.text, "cut": bytes.map(|_| true), "bytes": bytes, "digest": digest }))],
            "structured_content": structured,
            "ui_facing_summary": result.display.as_ref().map(|line| shown.text(line).text),
            "transcript_search_text": result.transcript.as_ref().map(|words| shown.text(words).text),
            "written": result.receipt.written,
            "summary": match result.receipt.written {
                Some(Written::Empty) => Some("the tool did its work and had nothing to say"),
                Some(Written::Missing) => Some("the tool wrote no answer"),
                _ => None,
            },
            "artifact_refs": artifacts,
            "resource_refs": resources,
            "evidence_refs": evidence(result),
            "telemetry_refs": [{
                "tool_name": self.name,
                "tool_call_id": self.native_call_id,
                "duration_ms": result.receipt.ms,
                "waited_ms": result.receipt.waited_ms,
                "cpu_ms": result.receipt.cpu_ms,
                "peak_memory_bytes": result.receipt.peak_memory_bytes,
                "result_size_bytes": content.len(),
            }],
            "persistence_refs": self.persistence.iter().collect::<Vec<_>>(),
            "redaction_state": if masked { "redacted" } else { "none" },
            "error": error,
            "created_at": time(at),
        }));
        (Kind::Result, line)
    }

    /// The files and hosts that the arguments of a call that succeeded name, as the tool's record says what they are.
    fn touched(&self, result: &ToolResult, such: impl Fn(Use) -> bool) -> Vec<Value> {
        let (Some(tool), Some((input, _)), false) = (&self.tool, &self.inputs.call, result.is_error()) else {
            return Vec::new();
        };
        let resources = tool.interface.validation.io_preflight_validation.value.iter();
        let named = resources.filter(|resource| such(resource.r#use)).flat_map(|resource| {
            let values = match input.pointer(&resource.field) {
                Some(Value::Array(several)) => several.iter().collect(),
                one => Vec::from_iter(one),
            };
            values.into_iter().map(|value| json!({ "ref": value, "use": resource.r#use, "argument": resource.field }))
        });
        named.collect()
    }

    fn invocation(&self, end: Option<(&ToolResult, SystemTime)>, shown: &Shown) -> Line {
        // What a tool marks as sensitive cannot be told from the rest in a text that was not checked.
        let is_open = self.tool.as_ref().is_some_and(|tool| tool.sensitive.is_empty());
        let model = is_open.then(|| shown.text(&self.model));
        let input = |input: &Option<(Value, String)>| input.clone().unzip();
        let (observable, observable_ref) = input(&self.inputs.observable);
        let (permission, permission_ref) = input(&self.inputs.permission);
        let (call, call_ref) = input(&self.inputs.call);
        let line = record(json!({
            "invocation_id": self.id,
            "tool_id": self.tool_id(),
            "name": self.name,
            "native_call_id": self.native_call_id,
            "native_ids": self.tool.as_ref().and_then(|tool| tool.native_ids.as_ref()),
            "status": self.state,
            "model_input": model.map(|model| model.text),
            "model_input_ref": self.input(0),
            "model_input_bytes": self.model.len(),
            "model_input_digest": is_open.then(|| digest(&self.model)),
            "observable_input": observable,
            "observable_input_ref": observable_ref,
            "permission_input": permission,
            "permission_input_ref": permission_ref,
            "call_input": call,
            "call_input_ref": call_ref,
            "runtime_refs": [super::PRODUCER],
            "permission_decision_refs": self.decisions,
            "hook_refs": self.hooks,
            "evidence_refs": end.map(|(result, _)| evidence(result)),
            "result_ref": end.map(|_| self.result_id()),
            "scheduler_policy_ref": SCHEDULER,
            "status_transitions": self.transitions,
            "created_at": time(self.created),
            "started_at": self.started.map(time),
            "ended_at": end.map(|(_, at)| time(at)),
        }));
        (Kind::Invocation, line)
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

/// What proves the end of a call: its line in the audit log, its receipt, and the program that ran.
fn evidence(result: &ToolResult) -> Vec<String> {
    let receipt = serde_json::to_string(&result.receipt).unwrap_or_default();
    let mut refs = vec![format!("audit:{}", result.receipt.invocation), format!("receipt:{}", digest(receipt))];
    refs.extend(result.receipt.digest.as_ref().map(|digest| format!("program:{digest}")));
    refs
}

/// Whether a tool's answer names references as the records do: an array of objects.
fn is_refs(value: &Value) -> bool {
    value.as_array().is_some_and(|refs| refs.iter().all(Value::is_object))
}
