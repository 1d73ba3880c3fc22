//! Execution of one call: the tool, its prepared state, and the code that runs it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::pipeline::prepared::PreparedTool;
use crate::policy::Grant;
use crate::sandbox::{Interpreter, Program};
use crate::tool::typed::Typed;
use crate::tool::{Builtin, Remote, Rich, Script, Skill, Tool};

use super::call_context::InvocationFields;
use super::held_effects::HeldEffects;

/// A call that is ready to run.
pub(crate) struct Execution<'p> {
    pub(crate) tool: &'p Tool,
    pub(crate) prepared: &'p PreparedTool,
    /// Grant of the call: that of the tool, with the stage of the call if it has one.
    pub(crate) grant: Cow<'p, Arc<Grant>>,
    /// Effects that are held back until the end of the call.
    pub(crate) held: Option<Box<HeldEffects>>,
    pub(crate) runner: Runner<'p>,
}

/// Code that runs a call, by the kind of its tool.
pub(crate) enum Runner<'p> {
    Command(Arc<Program>),
    Rich(Box<RichRunner<'p>>),
    Typed(Arc<Program>, &'p Typed),
    Script(Arc<Interpreter>, &'p Script),
    Remote(&'p Remote),
    Skill(&'p Arc<Skill>),
    SkillScripts(&'p Arc<Skill>),
    Host(Builtin),
}

/// Program of a rich tool with the invocation that its functions get.
pub(crate) struct RichRunner<'p> {
    pub(crate) program: Arc<Program>,
    pub(crate) rich: &'p Rich,
    pub(crate) invocation: InvocationFields,
}

impl<'p> Execution<'p> {
    /// Returns the digest of the program, script, skill or pinned definition; empty for a host tool.
    pub(crate) fn digest(&self) -> &str {
        match &self.runner {
            Runner::Rich(rich) => &rich.program.digest,
            Runner::Command(program) | Runner::Typed(program, _) => &program.digest,
            Runner::Script(_, script) => &script.digest,
            Runner::Remote(remote) => &remote.digest,
            Runner::Skill(skill) | Runner::SkillScripts(skill) => &skill.digest,
            Runner::Host(_) => "",
        }
    }

    /// Returns the program that checks the arguments itself, if the tool has one.
    pub(crate) fn checker(&self) -> Option<&Program> {
        match &self.runner {
            Runner::Rich(rich) if rich.rich.exports.validate => Some(&rich.program),
            Runner::Command(program) | Runner::Typed(program, _) => Some(program),
            Runner::Rich(_)
            | Runner::Script(..)
            | Runner::Remote(_)
            | Runner::Skill(_)
            | Runner::SkillScripts(_)
            | Runner::Host(_) => None,
        }
    }

    /// Returns the runner of a rich tool.
    pub(crate) fn rich(&self) -> Option<&RichRunner<'p>> {
        match &self.runner {
            Runner::Rich(rich) => Some(rich),
            _ => None,
        }
    }
}
