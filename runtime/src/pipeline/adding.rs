//! Tools and hooks that a script adds to its run. They have no more rights than their maker: its grant, its limits, its
//! origin, and the rules of the operator over their own names.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::sandbox::Addition;
use crate::schema::Input;
use crate::source;
use crate::tool::{LimitRequest, Limits, Tool};

use super::memory::Added;
use super::ready::Ready;
use super::{Memory, Pipeline, Scripted};

const FULL: &str = "this run has no room for more";

impl Pipeline {
    /// Adds what a tool's script defines.
    ///
    /// # Errors
    ///
    /// What is wrong with the definition, or why it is not added.
    pub(super) fn add(
        &self,
        what: Addition,
        definition: &Value,
        maker: &str,
        memory: &Arc<Memory>,
    ) -> Result<(), String> {
        let maker = self.entry(maker, memory).map_err(|_| "only the script of a tool adds to its run")?;
        match what {
            Addition::Tool => {
                let tool = source::defined_tool(definition, maker.tool)?;
                if let Some(added) = memory.tools.iter().find(|added| added.tool.name == tool.name) {
                    return Err(format!("a tool {:?} was added to this run already", added.tool.name));
                }
                self.registry.admits(&tool).map_err(|error| match error {
                    // Where the two stand on the host is the operator's own affair.
                    Error::LookAlike { name, like, .. } => format!("tool `{name}` looks like `{like}`"),
                    _ => format!("there is a tool {:?} already", tool.name),
                })?;
                let ready = self.ready_like(&tool, maker.ready)?;
                memory.tools.add(Added { tool, ready }).map_err(|_| FULL.to_owned())
            }
            Addition::Hook => {
                let hook = source::defined_hook(definition, maker.tool)?;
                let ready = self.ready_like(&hook.tool, maker.ready)?;
                memory.hooks.add(Scripted { hook, ready }).map_err(|_| FULL.to_owned())
            }
        }
    }

    fn ready_like(&self, tool: &Tool, maker: &Ready) -> Result<Ready, String> {
        let input = Input::compile(tool)?;
        let limits = tool.limits.within(&LimitRequest::default(), maker.limits, false);
        let slots = self.scheduler.calls;
        let mut ready = Ready::sharing(input, maker.grant.clone(), Limits { fuel: maker.limits.fuel, ..limits }, slots);
        ready.closed = self.rules.blocks(tool).map(|rule| {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            (decision, "refused by a rule of the operator's".to_owned())
        });
        Ok(ready)
    }
}
