//! The last records of a call: its result, and the invocation as a whole.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::agent_tool::shown::Shown;
use crate::agent_tool::word::{Circumstances, End, EventType, State};
use crate::agent_tool::writer::Kind;
use crate::agent_tool::{PRODUCER, SCHEDULER, compact, record, time};
use crate::call::{ToolResult, Written};
use crate::error::{Outcome, ToolError};
use crate::source::digest;
use crate::tool::Use;

use super::{Call, Line};

/// EventKind the host says of a call that the failure of another has ended.
const BY_SIBLING: &str = "failed, and this call";

impl Call {
    pub(super) fn ended(&mut self, result: &ToolResult, at: SystemTime, shown: &Shown) -> Vec<Line> {
        // No tool's own words are in an error of this outcome.
        let by_sibling = |error: &ToolError| error.outcome == Outcome::Cancelled && error.message.contains(BY_SIBLING);
        let circumstances = Circumstances {
            found: self.tool.is_some(),
            started: self.started.is_some(),
            failed: result.receipt.network.is_some() && result.receipt.exit != Some(0),
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
        // A preview is the host's word, and half a value is none.
        let is_whole = told.cut.is_none() && result.receipt.persisted.is_none();
        let structured = is_whole.then(|| serde_json::from_str::<Value>(&told.text).ok()).flatten();
        let structured = structured.filter(|value| value.is_object() || value.is_array());
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

    pub(super) fn invocation(&self, end: Option<(&ToolResult, SystemTime)>, shown: &Shown) -> Line {
        // EventKind a tool marks as sensitive cannot be told from the rest in a text that was not checked.
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
            "model_input_digest": is_open.then(|| digest(self.model.as_bytes())),
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
        (Kind::Invocation, line)
    }
}

/// EventKind proves the end of a call: its line in the audit log, its receipt, and the program that ran.
fn evidence(result: &ToolResult) -> Vec<String> {
    let receipt = serde_json::to_string(&result.receipt).unwrap_or_default();
    let mut refs =
        vec![format!("audit:{}", result.receipt.invocation), format!("receipt:{}", digest(receipt.as_bytes()))];
    refs.extend(result.receipt.digest.as_ref().map(|digest| format!("program:{digest}")));
    refs
}

/// Whether a tool's answer names references as the records do: an array of objects.
fn is_refs(value: &Value) -> bool {
    value.as_array().is_some_and(|refs| refs.iter().all(Value::is_object))
}
