//! EventKind tools there are: the records of a crib. A fact says where it is from, and a grant is told without the host's paths.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::call::{Availability, Reason};
use crate::policy::Grant;
use crate::source::digest;
use crate::tool::{Access, FileRequest, Limits, SiblingFailure, Tool};

use super::{PRODUCER, SCHEDULER, compact, record, time, tool_id};

/// A tool with all that its records say.
#[derive(Debug)]
pub struct CribEntry<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// EventKind it was granted.
    pub grant: &'a Grant,
    /// The limits under which it runs.
    pub limits: &'a Limits,
    /// SHA-256 of its program, as `sha256:HEX`, where it is known.
    pub digest: Option<String>,
    /// Availability to a model. Unusable tools have no Agent Tool records.
    pub availability: Availability<'a>,
}

/// How the calls of a step are put in order.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// How many calls run at once.
    pub at_once: usize,
    /// The most calls of a step.
    pub max_calls: usize,
    /// EventKind the failure of a call means to the others, where its tool does not say.
    pub sibling_failure: SiblingFailure,
}

/// The records of a crib, by kind.
#[derive(Debug, Default, Serialize)]
pub struct Crib {
    /// One a tool: what it is and where it came from.
    pub declarations: Vec<Value>,
    /// One a tool: how it behaves, by the ten partitions.
    pub interfaces: Vec<Value>,
    /// How it runs.
    pub execution_profiles: Vec<Value>,
    /// EventKind it may do.
    pub permission_profiles: Vec<Value>,
    /// One: how the calls of a step are put in order.
    pub scheduler_policies: Vec<Value>,
    /// One for each tool that a model has to search for.
    pub deferred_tools: Vec<Value>,
    /// One: which tools are shown.
    pub surfaces: Vec<Value>,
}

impl Crib {
    /// The records of these tools, made at a time.
    pub fn of<'a>(entries: impl IntoIterator<Item = CribEntry<'a>>, order: Order, at: SystemTime) -> Self {
        let is_usable = |entry: &CribEntry<'_>| !matches!(entry.availability, Availability::Unusable { .. });
        let entries: Vec<_> = entries.into_iter().filter(is_usable).collect();
        let mut crib = Self::default();
        let (mut profiles, mut interfaces) = (Profiles::default(), Interfaces::default());
        for entry in &entries {
            let id = tool_id(entry.tool);
            let stated = &entry.tool.interface;
            let execution = profiles.add(
                &mut crib.execution_profiles,
                "execution_profile_id",
                (&stated.execution.execution_profile_ref.value, &id, "execution"),
                execution(entry),
            );
            let permission = profiles.add(
                &mut crib.permission_profiles,
                "permission_profile_id",
                (&stated.permission.permission_profile_ref.value, &id, "permission"),
                permission(entry),
            );
            let known_as = interfaces.add(entry.tool, &id);
            let refs = Refs { tool: id, interface: known_as, execution, permission };
            crib.declarations.push(declaration(entry, &refs));
            crib.interfaces.push(interface(entry, &refs));
            if matches!(entry.availability, Availability::Deferred) {
                crib.deferred_tools.push(deferred(entry));
            }
        }
        crib.scheduler_policies.push(scheduler(&entries, order));
        crib.surfaces.push(surface(&entries, at));
        crib
    }

    /// The kinds with their names.
    pub fn kinds(&self) -> [(&'static str, &[Value]); 7] {
        [
            ("declarations", &self.declarations),
            ("interfaces", &self.interfaces),
            ("execution_profiles", &self.execution_profiles),
            ("permission_profiles", &self.permission_profiles),
            ("scheduler_policies", &self.scheduler_policies),
            ("deferred_tools", &self.deferred_tools),
            ("surfaces", &self.surfaces),
        ]
    }
}

/// The identifiers by which a tool's records refer to one another.
struct Refs {
    tool: String,
    interface: String,
    execution: String,
    permission: String,
}

/// The identifiers of interfaces that are taken.
#[derive(Default)]
struct Interfaces(HashSet<String>);

impl Interfaces {
    /// The identifier that the tool's source gives, unless it is taken.
    fn add(&mut self, tool: &Tool, id: &str) -> String {
        let stated = tool.origin.unknown.get("interface_id").and_then(Value::as_str);
        let stated = stated.filter(|stated| self.0.insert((*stated).to_owned()));
        stated.map_or_else(|| format!("{id}/interface"), str::to_owned)
    }
}

/// The identifiers of profiles that are taken.
#[derive(Default)]
struct Profiles(HashSet<String>);

impl Profiles {
    /// Adds a profile under the name that the tool's source gives it, and gives back its identifier. Tools share a profile
    /// only where it says the same of both.
    fn add(
        &mut self,
        profiles: &mut Vec<Value>,
        field: &str,
        (named, tool, own): (&str, &str, &str),
        profile: Value,
    ) -> String {
        let own = format!("{tool}/{own}");
        let under = |id: &str| {
            let mut fields = Map::from_iter([(field.to_owned(), json!(id))]);
            fields.extend(profile.as_object().cloned().unwrap_or_default());
            record(Value::Object(fields))
        };
        let wanted = if named.is_empty() { &own } else { named };
        let profile = under(wanted);
        if self.0.insert(wanted.to_owned()) {
            profiles.push(profile);
            return wanted.to_owned();
        }
        if profiles.contains(&profile) {
            return wanted.to_owned();
        }
        self.0.insert(own.clone());
        profiles.push(under(&own));
        own
    }
}

fn declaration(entry: &CribEntry<'_>, refs: &Refs) -> Value {
    let CribEntry { tool, availability, .. } = entry;
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

/// Where each fact is from.
fn basis(tool: &Tool) -> Map<String, Value> {
    tool.interface.rows().into_iter().map(|row| (row.field.to_owned(), json!(row.basis))).collect()
}

/// Where the tool came from, and what other systems call it.
fn mappings(entry: &CribEntry<'_>) -> Vec<Value> {
    let CribEntry { tool, digest: program, .. } = entry;
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

fn model_schema(tool: &Tool) -> Value {
    tool.model_input_schema().map_or_else(|| json!({ "type": "object", "properties": {} }), Cow::into_owned)
}

/// Every fact of the ten partitions under its own name; those of how a call is shown stand together.
fn interface(entry: &CribEntry<'_>, refs: &Refs) -> Value {
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

fn execution(entry: &CribEntry<'_>) -> Value {
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

fn permission(entry: &CribEntry<'_>) -> Value {
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

fn deferred(entry: &CribEntry<'_>) -> Value {
    let (tool, facts) = (entry.tool, &entry.tool.interface);
    record(json!({
        "tool_id": tool_id(tool),
        "name": tool.name,
        "namespace": facts.identity.namespace.value,
        "search_hint": facts.discovery.search_hint.value,
        "source": tool.origin.format,
        "schema_visibility": "deferred",
        "loading_state": "discoverable",
        "reason": "a model is shown it after a search",
        "selection_ref": format!("select:{}", tool.name),
        "native_ref": facts.identity.native_ids.value,
    }))
}

fn scheduler(entries: &[CribEntry<'_>], order: Order) -> Value {
    let alone = entries.iter().filter(|entry| !entry.tool.interface.safety.is_concurrency_safe.value);
    record(json!({
        "scheduler_policy_id": SCHEDULER,
        "scope": "step",
        "max_parallel": order.at_once,
        "max_calls": order.max_calls,
        "ordering_policy": "preserve_terminal_order",
        "yield_policy": "progress_immediate_results_ordered",
        "interrupt_behavior": "block",
        "sibling_failure_policy": order.sibling_failure,
        "context_modifier_policy": "forbid",
        "resource_locks": alone.map(|entry| json!({ "tool_id": tool_id(entry.tool), "mode": "exclusive" })).collect::<Vec<_>>(),
    }))
}

fn surface(entries: &[CribEntry<'_>], at: SystemTime) -> Value {
    let (mut loaded, mut deferred, mut blocked, mut excluded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let id = tool_id(entry.tool);
        match &entry.availability {
            Availability::Unusable { .. } => {}
            Availability::Loaded => loaded.push(id),
            Availability::Deferred => deferred.push(id),
            Availability::Disabled { decision, why } => {
                let (place, reason) = match (decision.reason, decision.rests_on.as_deref()) {
                    (Reason::Record, Some("requires_setup")) => (&mut excluded, "setup_required"),
                    (Reason::Record, Some("required_credentials")) => (&mut excluded, "credential_missing"),
                    (Reason::Record, _) => (&mut excluded, "feature_disabled"),
                    _ => (&mut blocked, "policy_blocked"),
                };
                // A rule about every call of a tool has no arguments, but ends with the place at which it was written: which may
                // tell a folder of the host.
                let rule =
                    decision.rests_on.as_deref().map(|rule| rule.split_once(" (").map_or(rule, |(rule, _)| rule));
                place.push(compact(json!({ "tool_id": id, "reason": reason, "message": why, "rests_on": rule })));
            }
        }
    }
    let shown = json!([loaded, deferred, blocked, excluded]).to_string();
    record(json!({
        "surface_id": format!("toolcrib.surface/{}", digest(shown.as_bytes())),
        "scope": "session",
        "created_at": time(at),
        "producer": PRODUCER,
        "tool_refs": entries.iter().map(|entry| tool_id(entry.tool)).collect::<Vec<_>>(),
        "loaded_tools": loaded,
        "deferred_tools": deferred,
        "blocked_tools": blocked,
        "excluded_tools": excluded,
        "default_tool_choice": "auto",
        "surface_reason": "what the sources hold and the operator's rules leave",
        "runtime_refs": [PRODUCER],
    }))
}
