//! Records of one tool.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolcrib::call::{Availability, Reason};
use toolcrib::source::digest;
use toolcrib::tool::{Access, FileRequest, Limits, Tool};

use crate::{compact, record, tool_id};

use super::InventoryEntry;

/// Identifiers for references between the records of a tool.
pub(super) struct Refs {
    pub(super) tool: String,
    pub(super) interface: String,
    pub(super) execution: String,
    pub(super) permission: String,
}

/// Declares the identity, the contracts and the origin of a tool.
pub(super) fn declaration(entry: &InventoryEntry<'_>, refs: &Refs) -> Value {
    let InventoryEntry { tool, availability, .. } = entry;
    let facts = &tool.interface;
    let lifecycle = match availability {
        Availability::Disabled { .. } if !facts.availability.is_enabled.value => "disabled",
        Availability::Disabled { decision, .. } if decision.reason == Reason::Record => "requires_setup",
        Availability::Deferred => "deferred",
        _ => "available",
    };
    let kind = match tool.origin.unknown.get("tool_kind") {
        Some(Value::String(kind)) => kind.as_str(),
        _ if tool.requested.files != FileRequest::None => "file_operation",
        _ => "function",
    };
    record(json!({
        "tool_id": refs.tool,
        "namespace": facts.identity.namespace.value,
        "name": tool.name,
        "aliases": facts.identity.aliases.value,
        "search_hint": facts.discovery.search_hint.value,
        "title": facts.identity.user_facing_name.value,
        "description": tool.description.as_deref().unwrap_or_default(),
        "lifecycle": lifecycle,
        "tool_kind": kind,
        "capability_refs": facts.discovery.capability_refs.value,
        "input_contract": {
            "argument_mode": "json",
            "strict": facts.schemas.strict.value,
            "model_input_schema": model_schema(tool),
            "sensitive_fields": tool.sensitive_names(),
            "mutation_policy": "hooks",
        },
        "output_contract": compact(json!({
            "structured_schema": facts.schemas.output_schema.value,
            "content_types": ["text"],
            "max_inline_chars": facts.result.max_inline_chars.value,
            "persistence_policy_ref": facts.result.persistence_policy_ref.value,
        })),
        "interface_ref": refs.interface,
        "execution_profile_ref": refs.execution,
        "permission_profile_ref": refs.permission,
        "external_mappings": mappings(entry),
        "annotations": { "basis": basis(tool) },
    }))
}

/// Returns the basis of each property: declared, inferred or default.
fn basis(tool: &Tool) -> Map<String, Value> {
    tool.interface.rows().into_iter().map(|row| (row.field.to_owned(), json!(row.basis))).collect()
}

/// Returns the origin of a tool, and its names in other systems.
fn mappings(entry: &InventoryEntry<'_>) -> Vec<Value> {
    let InventoryEntry { tool, digest: program, .. } = entry;
    let name = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let source = compact(json!({
        "native_source": "toolcrib",
        "format": tool.origin.format,
        "file": name(&tool.origin.path),
        "index": tool.origin.index,
        "digest": tool.origin.text.as_ref().map(|text| digest(text.as_bytes())),
        "program": tool.body.program().and_then(name),
        "program_digest": program,
    }));
    let mut mappings = vec![source];
    if let Some(Value::Object(natives)) = &tool.interface.identity.native_ids.value {
        mappings.extend(natives.iter().map(|(system, id)| json!({ "native_source": system, "native_id": id })));
    }
    if let Some(Value::Array(stated)) = tool.origin.unknown.get("external_mappings") {
        mappings.extend(stated.iter().filter(|mapping| mapping.is_object()).cloned());
    }
    mappings
}

/// Returns the schema for models, which is empty for a tool without one.
fn model_schema(tool: &Tool) -> Value {
    tool.model_input_schema().map_or_else(|| json!({ "type": "object", "properties": {} }), Cow::into_owned)
}

/// Describes every property of the ten partitions under its own name, with the rendering properties in one object.
pub(super) fn interface(entry: &InventoryEntry<'_>, refs: &Refs) -> Value {
    let tool = entry.tool;
    let mut fields = Map::from_iter([("interface_id".to_owned(), json!(refs.interface))]);
    let mut rendering = Map::new();
    for row in tool.interface.rows().into_iter().filter(|row| !row.value.is_null()) {
        let place = if row.partition == "rendering" { &mut rendering } else { &mut fields };
        place.insert(row.field.to_owned(), row.value);
    }
    let runtime = &tool.interface.schemas.runtime_input_schema.value;
    fields.extend([
        ("tool_id".to_owned(), json!(refs.tool)),
        ("name".to_owned(), json!(tool.name)),
        ("description".to_owned(), json!(tool.description)),
        ("model_input_schema".to_owned(), model_schema(tool)),
        ("runtime_input_schema".to_owned(), json!(runtime.as_ref().or(tool.parameters.as_ref()))),
        ("execution_profile_ref".to_owned(), json!(refs.execution)),
        ("permission_profile_ref".to_owned(), json!(refs.permission)),
        ("timeout_ms".to_owned(), json!(millis(entry.limits))),
        ("rendering".to_owned(), Value::Object(rendering)),
        ("external_mappings".to_owned(), json!(mappings(entry))),
        ("annotations".to_owned(), json!({ "basis": basis(tool) })),
    ]);
    record(Value::Object(fields))
}

/// Describes the execution of a tool.
pub(super) fn execution(entry: &InventoryEntry<'_>) -> Value {
    let (limits, facts) = (entry.limits, &entry.tool.interface);
    json!({
        "execution_kind": "embedded_runtime",
        "supports_progress": true,
        "supports_cancel": true,
        "supports_resume": false,
        "supports_retries": false,
        "supports_partial_results": false,
        "supports_background": false,
        "supports_artifacts": false,
        "supports_context_modifiers": false,
        "sandboxed": true,
        "sandbox_profile": facts.safety.sandbox_profile.value,
        "timeout_ms": millis(limits),
        "abort_semantics": facts.execution.abort_semantics.value,
        "interrupt_behavior": facts.execution.interrupt_behavior.value,
        "limits": compact(json!({
            "memory_bytes": limits.memory,
            "stack_bytes": Limits::MAX_STACK,
            "stdout_bytes": limits.stdout,
            "stderr_bytes": limits.stderr,
            "handles": limits.handles,
            "disk_bytes": limits.disk_bytes,
            "disk_entries": limits.disk_entries,
            "host_call_bytes": limits.host_call,
            "fuel": limits.fuel,
        })),
    })
}

fn millis(limits: &Limits) -> u64 {
    u64::try_from(limits.deadline.as_millis()).unwrap_or(u64::MAX)
}

/// Describes the permissions of a tool.
pub(super) fn permission(entry: &InventoryEntry<'_>) -> Value {
    let (grant, facts) = (entry.grant, &entry.tool.interface);
    let most = grant.folders().iter().map(|folder| folder.access).max();
    let env: Vec<&str> = grant.env_keys().collect();
    let kinds =
        [(most.is_some(), "file_read"), (most == Some(Access::Write), "file_write"), (!env.is_empty(), "environment")];
    let access: Vec<&str> = kinds.into_iter().filter_map(|(has, kind)| has.then_some(kind)).collect();
    let matcher = facts.permission.permission_matcher.value.iter();
    let fields = facts.validation.io_preflight_validation.value.iter().map(|resource| &resource.field);
    json!({
        "risk_level": facts.permission.risk_level.value,
        "access_kinds": access,
        "write_effects": [if most == Some(Access::Write) { "local_persistent" } else { "none" }],
        "network_scope": "none",
        "environment": env,
        "credential_refs": facts.availability.required_credentials.value,
        "sandbox_profile": facts.safety.sandbox_profile.value,
        "approval_required": facts.safety.requires_user_interaction.value,
        "approval_reason": facts.permission.approval_reason.value,
        "permission_channel": facts.permission.permission_channel.value,
        "rule_matching_fields": matcher.chain(fields).collect::<Vec<_>>(),
        "redaction_required": !facts.result.redaction_policy_refs.value.is_empty(),
        "policy_refs": facts.permission.decision_ref.value.iter().collect::<Vec<_>>(),
    })
}

/// Describes a tool that a model has to search for.
pub(super) fn deferred(entry: &InventoryEntry<'_>) -> Value {
    let (tool, facts) = (entry.tool, &entry.tool.interface);
    record(json!({
        "tool_id": tool_id(tool),
        "name": tool.name,
        "namespace": facts.identity.namespace.value,
        "search_hint": facts.discovery.search_hint.value,
        "source": tool.origin.format,
        "schema_visibility": "deferred",
        "loading_state": "discoverable",
        "reason": "shown to a model after a search",
        "selection_ref": format!("select:{}", tool.name),
        "native_ref": facts.identity.native_ids.value,
    }))
}
