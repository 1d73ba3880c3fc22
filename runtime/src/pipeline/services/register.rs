//! Registers the tools and hooks that a script adds to its run. They have no more rights than their maker: its grant, its
//! limits, its origin, and the operator's rules over their own names.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::pipeline::prepared::{PreparedTool, ScriptHook, ToolEntry};
use crate::pipeline::state::{AddedTool, ChainedHook, Memory, Pipeline, builtin};
use crate::registry::Registry;
use crate::sandbox::Registration;
use crate::schema::ToolValidator;
use crate::source;
use crate::tool::{Builtin, LimitRequest, Limits, Tool};

/// Maximum characters of an added tool's description.
const MAX_DESCRIPTION_LEN: usize = 4096;
/// Maximum bytes of an added tool's schema.
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// Maximum bytes of a name: every model server accepts this length.
const MAX_NAME_LEN: usize = 64;
const FULL: &str = "this run has reached its maximum";

/// Registers a tool or hook that the script of `maker` defines, and returns its name for the record.
///
/// # Errors
///
/// The error in the definition, or the reason why it is not registered.
pub(super) fn register(
    pipeline: &Pipeline,
    what: Registration,
    definition: &Value,
    maker: ToolEntry<'_>,
    memory: &Arc<Memory>,
) -> Result<String, String> {
    // Registrations follow one another, so that no two take one name.
    let _alone = memory.registering();
    match what {
        Registration::Tool => {
            let tool = source::defined_tool(definition, maker.tool)?;
            check_name(pipeline, &tool, memory)?;
            let prepared = prepare(pipeline, &tool, maker.prepared)?;
            let added = format!("tool:{}", tool.name);
            memory.tools.add(AddedTool { tool, prepared }).map_err(|_| FULL.to_owned()).map(|()| added)
        }
        Registration::Hook => {
            let mut definition = source::defined_hook(definition, maker.tool)?;
            pipeline.hook_access.give_scope(&mut definition);
            let mut prepared = prepare(pipeline, &definition.tool, maker.prepared)?;
            if pipeline.rules.restrict_hook(&definition.tool, &prepared.grant) {
                prepared = prepared.reading();
            }
            let added = format!("hook:{}", definition.tool.name);
            let hook = ScriptHook::new(definition, prepared, &pipeline.hook_access);
            let hook = ChainedHook::Script(Box::new(hook));
            memory.hooks.add(hook).map_err(|_| FULL.to_owned()).map(|()| added)
        }
    }
}

/// Checks that a model may see a tool under its name and with its description.
fn check_name(pipeline: &Pipeline, tool: &Tool, memory: &Memory) -> Result<(), String> {
    let name = &tool.name;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !plain || name.len() > MAX_NAME_LEN {
        return Err(format!("the name of a tool has at most {MAX_NAME_LEN} letters, digits, `_` and `-`"));
    }
    if tool.description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_LEN) {
        return Err(format!("tool {name:?}: more than {MAX_DESCRIPTION_LEN} characters of description"));
    }
    let schema = tool.parameters.as_ref().map_or(0, |schema| schema.to_string().len());
    if schema > MAX_SCHEMA_BYTES {
        return Err(format!("tool {name:?}: a schema of {schema} bytes, more than the {MAX_SCHEMA_BYTES} allowed"));
    }
    let mut added = Registry::default();
    let known = memory.tools.iter().map(|added| added.tool.clone());
    for known in known.chain(Builtin::ALL.map(builtin::tool)) {
        // Known tools were checked when they were added.
        let _ = added.add(known);
    }
    pipeline.registry.admits(tool).and_then(|()| added.admits(tool)).map_err(|error| match error {
        // The paths of the two tools are for the operator alone.
        Error::LookAlike { name, like, .. } => format!("tool `{name}` looks like `{like}`"),
        _ => format!("there is a tool {name:?} already"),
    })
}

/// Prepares an added tool or hook with the rights of its maker.
fn prepare(pipeline: &Pipeline, tool: &Tool, maker: &PreparedTool) -> Result<PreparedTool, String> {
    let input = ToolValidator::compile(tool)?;
    let limits = tool.limits.resolve(&LimitRequest::default(), maker.limits, false);
    let mut prepared = maker.derived(input, Limits { fuel: maker.limits.fuel, ..limits });
    let mut named = [tool.clone()];
    pipeline.policies.iter().for_each(|policy| policy.apply(&mut named));
    let by_policy = named[0]
        .disabled
        .take()
        .map(|disabled| (Decision::new(Behavior::Deny, Reason::Record, disabled.field), disabled.reason));
    prepared.disabled = by_policy.or_else(|| {
        pipeline.rules.blocks(tool).map(|rule| {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            (decision, "denied by an operator rule".to_owned())
        })
    });
    Ok(prepared)
}
