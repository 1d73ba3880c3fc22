//! Agent Tool records that describe the tools of a runtime. A grant is described without the paths of the host.

mod identifiers;
mod tool;

use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib::call::{Availability, Reason};
use toolcrib::policy::Grant;
use toolcrib::source::digest;
use toolcrib::tool::{Limits, SiblingFailure, Tool};

use crate::{PRODUCER, SCHEDULER, compact, record, time, tool_id};

use identifiers::{Interfaces, Profiles};
use tool::{Refs, declaration, deferred, execution, interface, permission};

/// Tool of an [`Inventory`], with the facts that its records state.
#[derive(Debug)]
pub struct InventoryEntry<'a> {
    /// Tool.
    pub tool: &'a Tool,
    /// Grant of the tool.
    pub grant: &'a Grant,
    /// Limits of its calls.
    pub limits: &'a Limits,
    /// SHA-256 of its program, as `sha256:HEX`, if it is known.
    pub digest: Option<String>,
    /// Availability to a model. Unusable tools have no Agent Tool records.
    pub availability: Availability<'a>,
}

/// Scheduling of a step's calls.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerPolicy {
    /// Maximum number of calls that run at the same time.
    pub max_parallel: usize,
    /// Maximum number of calls per step.
    pub max_calls: usize,
    /// Effect of a failed call on the others, unless its tool states one.
    pub sibling_failure: SiblingFailure,
}

/// Agent Tool records that describe a set of tools, by kind.
#[derive(Debug, Default, Serialize)]
pub struct Inventory {
    /// Identity and origin: one record for each tool.
    pub declarations: Vec<Value>,
    /// Behavior by the ten partitions: one record for each tool.
    pub interfaces: Vec<Value>,
    /// Execution and limits.
    pub execution_profiles: Vec<Value>,
    /// Permissions.
    pub permission_profiles: Vec<Value>,
    /// Scheduling of a step's calls: one record.
    pub scheduler_policies: Vec<Value>,
    /// Tools that a model has to search for: one record for each.
    pub deferred_tools: Vec<Value>,
    /// Tools by their availability: one record.
    pub surfaces: Vec<Value>,
}

impl Inventory {
    /// Creates the records of tools, with their creation's time.
    pub fn new<'a>(
        entries: impl IntoIterator<Item = InventoryEntry<'a>>,
        policy: SchedulerPolicy,
        created: SystemTime,
    ) -> Self {
        let is_usable = |entry: &InventoryEntry<'_>| !matches!(entry.availability, Availability::Unusable { .. });
        let entries: Vec<_> = entries.into_iter().filter(is_usable).collect();
        let mut inventory = Self::default();
        let (mut profiles, mut interfaces) = (Profiles::default(), Interfaces::default());
        for entry in &entries {
            let id = tool_id(entry.tool);
            let stated = &entry.tool.interface;
            let execution = profiles.add(
                &mut inventory.execution_profiles,
                "execution_profile_id",
                (&stated.execution.execution_profile_ref.value, &id, "execution"),
                execution(entry),
            );
            let permission = profiles.add(
                &mut inventory.permission_profiles,
                "permission_profile_id",
                (&stated.permission.permission_profile_ref.value, &id, "permission"),
                permission(entry),
            );
            let interface_id = interfaces.add(entry.tool, &id);
            let refs = Refs { tool: id, interface: interface_id, execution, permission };
            inventory.declarations.push(declaration(entry, &refs));
            inventory.interfaces.push(interface(entry, &refs));
            if matches!(entry.availability, Availability::Deferred) {
                inventory.deferred_tools.push(deferred(entry));
            }
        }
        inventory.scheduler_policies.push(scheduler(&entries, policy));
        inventory.surfaces.push(surface(&entries, created));
        inventory
    }

    /// Returns the records of each kind, with the kind's name.
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

/// Describes the scheduling of a step.
fn scheduler(entries: &[InventoryEntry<'_>], policy: SchedulerPolicy) -> Value {
    let alone = entries.iter().filter(|entry| !entry.tool.interface.safety.is_concurrency_safe.value);
    record(json!({
        "scheduler_policy_id": SCHEDULER,
        "scope": "step",
        "max_parallel": policy.max_parallel,
        "max_calls": policy.max_calls,
        "ordering_policy": "preserve_terminal_order",
        "yield_policy": "progress_immediate_results_ordered",
        "interrupt_behavior": "block",
        "sibling_failure_policy": policy.sibling_failure,
        "context_modifier_policy": "forbid",
        "resource_locks": alone.map(|entry| json!({ "tool_id": tool_id(entry.tool), "mode": "exclusive" })).collect::<Vec<_>>(),
    }))
}

/// Lists the tools by their availability.
fn surface(entries: &[InventoryEntry<'_>], at: SystemTime) -> Value {
    let (mut loaded, mut deferred, mut blocked, mut excluded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let id = tool_id(entry.tool);
        match &entry.availability {
            Availability::Loaded => loaded.push(id),
            Availability::Deferred => deferred.push(id),
            Availability::Disabled { decision, reason: why } => {
                let (place, reason) = match (decision.reason, decision.rests_on.as_deref()) {
                    (Reason::Record, Some("requires_setup")) => (&mut excluded, "setup_required"),
                    (Reason::Record, Some("required_credentials")) => (&mut excluded, "credential_missing"),
                    (Reason::Record, _) => (&mut excluded, "feature_disabled"),
                    _ => (&mut blocked, "policy_blocked"),
                };
                // A rule about a tool ends with the position at which it was written, which may name a folder of the host.
                let rule =
                    decision.rests_on.as_deref().map(|rule| rule.split_once(" (").map_or(rule, |(rule, _)| rule));
                place.push(compact(json!({ "tool_id": id, "reason": reason, "message": why, "rests_on": rule })));
            }
            // Unusable tools have no records.
            _ => {}
        }
    }
    let content = json!([loaded, deferred, blocked, excluded]).to_string();
    record(json!({
        "surface_id": format!("toolcrib.surface/{}", digest(content.as_bytes())),
        "scope": "session",
        "created_at": time(at),
        "producer": PRODUCER,
        "tool_refs": entries.iter().map(|entry| tool_id(entry.tool)).collect::<Vec<_>>(),
        "loaded_tools": loaded,
        "deferred_tools": deferred,
        "blocked_tools": blocked,
        "excluded_tools": excluded,
        "default_tool_choice": "auto",
        "surface_reason": "tools of the sources that the operator's rules allow",
        "runtime_refs": [PRODUCER],
    }))
}
