//! Last records of a call: its result, and the invocation as a whole.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolcrib::call::{ToolResult, Written};
use toolcrib::source::digest;
use toolcrib::tool::Use;
use toolcrib::{Outcome, ToolError};

use crate::redactor::Redactor;
use crate::vocabulary::{Circumstances, End, EventType, State};
use crate::writer::RecordKind;
use crate::{PRODUCER, SCHEDULER, compact, record, time};

use super::{Invocation, Record};

/// Part of the host's message for a call that ended because another call in its step failed.
const BY_SIBLING: &str = "failed, and this call";

impl Invocation {
    /// Returns the records of the call's end.
    pub(super) fn ended(&mut self, result: &ToolResult, at: SystemTime, redactor: &Redactor) -> Vec<Record> {
        // The message of a cancelled call is the host's own.
        let by_sibling = |error: &ToolError| error.outcome == Outcome::Cancelled && error.message.contains(BY_SIBLING);
        let circumstances = Circumstances {
            found: self.tool.is_some(),
            started: self.started.is_some(),
            failed: result.receipt.network.is_some() && result.receipt.exit != Some(0),
            by_sibling: result.outcome.as_ref().is_err_and(by_sibling),
            decision: result.receipt.decision.as_ref(),
        };
        let end = End::of(result.receipt.outcome, &circumstances);
        self.enter(end.state, at);
        let mut records = vec![self.result(result, &end, at, redactor)];
        for mut hook in std::mem::take(&mut self.post_hooks) {
            if result.receipt.written.is_none() {
                hook["hook_event"] = json!("post_tool_use_failure");
            }
            records.push((RecordKind::Hook, hook));
        }
        if self.started.is_some() {
            let (status, more) = match end.state {
                State::Succeeded => ("completed", json!({ "percent": 100 })),
                State::Canceled => ("canceled", Value::Null),
                _ => ("failed", Value::Null),
            };
            records.push(self.progress(status, at, more));
        }
        let data = json!({ "result_id": self.result_id(), "status": end.status });
        records.push(self.event(EventType::ResultCreated, at, data));
        records.push(self.event(end.event(), at, json!({ "outcome": result.receipt.outcome })));
        records.push(self.invocation(Some((result, at)), redactor));
        records
    }

    fn result(&self, result: &ToolResult, end: &End, at: SystemTime, redactor: &Redactor) -> Record {
        let content = result.content();
        let text = redactor.text(&content);
        // Neither a preview by the host nor a truncated text is the tool's value.
        let is_whole = text.cut.is_none() && result.receipt.persisted.is_none();
        let structured = is_whole.then(|| serde_json::from_str::<Value>(&text.text).ok()).flatten();
        let structured = structured.filter(|value| value.is_object() || value.is_array());
        let error = end.error.map(|(class, help)| {
            json!({
                "error_code": result.receipt.outcome,
                "error_class": class,
                "message": result.outcome.as_ref().err().map(|error| redactor.text(&error.message).text),
                "recoverability": help,
            })
        });
        let (bytes, digest) = text.cut.unzip();
        let answered = result.outcome.as_ref().ok().and(structured.as_ref());
        let named = |field: &str| answered.and_then(|answer| answer.get(field)).filter(|refs| is_refs(refs)).cloned();
        let mut artifacts = self.touched(result, |r#use| r#use == Use::Write);
        artifacts.extend(named("artifact_refs").and_then(|refs| refs.as_array().cloned()).unwrap_or_default());
        let mut resources = self.touched(result, |r#use| r#use != Use::Write);
        resources.extend(named("resource_refs").and_then(|refs| refs.as_array().cloned()).unwrap_or_default());
        let kept = result.receipt.persisted.as_ref().and_then(|persisted| persisted.reference.as_ref());
        resources.extend(kept.map(|reference| json!({ "kind": "toolcrib-result", "ref": reference })));
        let masked = text.masked || self.withheld;
        let record = record(json!({
            "result_id": self.result_id(),
            "invocation_id": self.id,
            "status": end.status,
            "is_error": result.is_error(),
            "model_facing_content": [compact(json!({ "type": "text", "text": text.text, "cut": bytes.map(|_| true), "bytes": bytes, "digest": digest }))],
            "structured_content": structured,
            "ui_facing_summary": result.display.as_ref().map(|line| redactor.text(line).text),
            "transcript_search_text": result.transcript.as_ref().map(|words| redactor.text(words).text),
            "written": result.receipt.written,
            "summary": match result.receipt.written {
                Some(Written::Empty) => Some("the tool succeeded without output"),
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
        (RecordKind::Result, record)
    }

    /// Returns the files and hosts in the arguments of a successful call, by the resources that the tool declares.
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

    /// Returns the record of the call as a whole.
    pub(super) fn invocation(&self, end: Option<(&ToolResult, SystemTime)>, redactor: &Redactor) -> Record {
        // Sensitive values cannot be found in a text that was not validated.
        let is_open = self.tool.as_ref().is_some_and(|tool| tool.sensitive.is_empty());
        let model = is_open.then(|| redactor.text(&self.model_input));
        let input = |input: &Option<(Value, String)>| input.clone().unzip();
        let (observable, observable_ref) = input(&self.inputs.observable);
        let (permission, permission_ref) = input(&self.inputs.permission);
        let (call, call_ref) = input(&self.inputs.call);
        let record = record(json!({
            "invocation_id": self.id,
            "tool_id": self.tool_id(),
            "name": self.name,
            "native_call_id": self.native_call_id,
            "native_ids": self.tool.as_ref().and_then(|tool| tool.native_ids.as_ref()),
            "status": self.state,
            "model_input": model.map(|model| model.text),
            "model_input_ref": self.input_ref(0),
            "model_input_bytes": self.model_input.len(),
            "model_input_digest": is_open.then(|| digest(self.model_input.as_bytes())),
            "observable_input": observable,
            "observable_input_ref": observable_ref,
            "permission_input": permission,
            "permission_input_ref": permission_ref,
            "call_input": call,
            "call_input_ref": call_ref,
            "runtime_refs": [PRODUCER],
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
        (RecordKind::Invocation, record)
    }
}

/// Returns references to the evidence of a call: its line in the audit log, its receipt, and the program that ran.
fn evidence(result: &ToolResult) -> Vec<String> {
    let receipt = serde_json::to_string(&result.receipt).unwrap_or_default();
    let mut refs =
        vec![format!("audit:{}", result.receipt.invocation), format!("receipt:{}", digest(receipt.as_bytes()))];
    refs.extend(result.receipt.digest.as_ref().map(|digest| format!("program:{digest}")));
    refs
}

/// Returns `true` for an array of objects, the form that references have in records.
fn is_refs(value: &Value) -> bool {
    value.as_array().is_some_and(|refs| refs.iter().all(Value::is_object))
}
