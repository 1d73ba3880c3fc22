//! Tools and hooks that a script adds to its run. They have no more rights than their maker: its grant, its limits, its
//! origin, and the rules of the operator over their own names.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::registry::Registry;
use crate::sandbox::Addition;
use crate::schema::Input;
use crate::source;
use crate::tool::{Builtin, LimitRequest, Limits, Tool};

use super::memory::Added;
use super::ready::Ready;
use super::{Entry, Memory, Pipeline, Scripted, builtin};

/// The most characters of what an added tool says of itself, and the most bytes of its schema.
const MAX_DESCRIPTION_LEN: usize = 4096;
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// The longest name that every model server takes.
const MAX_NAME_LEN: usize = 64;
const FULL: &str = "this run has reached its maximum";

impl Pipeline {
    /// Adds what a tool's script defines.
    ///
    /// # Errors
    ///
    /// EventKind is wrong with the definition, or why it is not added.
    pub(super) fn add(
        &self,
        what: Addition,
        definition: &Value,
        maker: Entry<'_>,
        memory: &Arc<Memory>,
    ) -> Result<String, String> {
        // One is added after the other, so that no two take one name.
        let _alone = memory.adding();
        match what {
            Addition::Tool => {
                let tool = source::defined_tool(definition, maker.tool)?;
                self.admit(&tool, memory)?;
                let ready = self.ready_like(&tool, maker.ready)?;
                let told = format!("tool:{}", tool.name);
                memory.tools.add(Added { tool, ready }).map_err(|_| FULL.to_owned()).map(|()| told)
            }
            Addition::Hook => {
                let hook = source::defined_hook(definition, maker.tool)?;
                let ready = self.ready_like(&hook.tool, maker.ready)?;
                let told = format!("hook:{}", hook.tool.name);
                memory.hooks.add(Scripted { hook, ready }).map_err(|_| FULL.to_owned()).map(|()| told)
            }
        }
    }

    /// Whether a tool may be shown to a model under its name and with its words: there is nobody to warn any more.
    fn admit(&self, tool: &Tool, memory: &Memory) -> Result<(), String> {
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
            // EventKind is there was admitted.
            let _ = added.add(known);
        }
        self.registry.admits(tool).and_then(|()| added.admits(tool)).map_err(|error| match error {
            // Where the two stand on the host is the operator's own affair.
            Error::LookAlike { name, like, .. } => format!("tool `{name}` looks like `{like}`"),
            _ => format!("there is a tool {name:?} already"),
        })
    }

    fn ready_like(&self, tool: &Tool, maker: &Ready) -> Result<Ready, String> {
        let input = Input::compile(tool)?;
        let limits = tool.limits.within(&LimitRequest::default(), maker.limits, false);
        let mut ready = maker.sharing(input, Limits { fuel: maker.limits.fuel, ..limits });
        let mut named = [tool.clone()];
        self.policies.iter().for_each(|policy| policy.close(&mut named));
        let by_policy = named[0]
            .disabled
            .take()
            .map(|disabled| (Decision::new(Behavior::Deny, Reason::Record, disabled.by), disabled.why));
        ready.disabled = by_policy.or_else(|| {
            self.rules.blocks(tool).map(|rule| {
                let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
                (decision, "denied by an operator rule".to_owned())
            })
        });
        Ok(ready)
    }
}
