//! Hooks that are scripts: what they hear, and when.

use std::fmt;
use std::str::FromStr;

use super::{Glob, Tool};

/// A hook whose judgement is a script.
#[derive(Debug, Clone)]
pub struct ScriptedHook {
    /// Its name, its script, what it asks for and where it is from, in the words of a tool. No model is shown it.
    pub tool: Tool,
    /// What it hears.
    pub event: HookPoint,
    /// Lower is earlier.
    pub priority: i32,
    /// Of what it hears, what it is asked about.
    pub when: When,
}

/// Something that happens in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookPoint {
    /// A run begins.
    RunStart,
    /// A run ends.
    RunEnd,
    /// A model is about to be asked.
    ModelPre,
    /// A model has answered.
    ModelPost,
    /// A call is about to run.
    ToolPre,
    /// A call has run.
    ToolPost,
    /// Whatever an embedder calls so: `custom.` and this name.
    Custom(String),
}

/// What an event's own name begins with where it is no event of ours.
const CUSTOM: &str = "custom.";

impl HookPoint {
    /// Those with a name of ours.
    pub const OWN: [Self; 6] =
        [Self::RunStart, Self::RunEnd, Self::ModelPre, Self::ModelPost, Self::ToolPre, Self::ToolPost];
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HookPoint::RunStart => "run.start",
            HookPoint::RunEnd => "run.end",
            HookPoint::ModelPre => "model.pre",
            HookPoint::ModelPost => "model.post",
            HookPoint::ToolPre => "tool.pre",
            HookPoint::ToolPost => "tool.post",
            HookPoint::Custom(name) => return write!(f, "{CUSTOM}{name}"),
        })
    }
}

impl FromStr for HookPoint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(name) = text.strip_prefix(CUSTOM).filter(|name| !name.is_empty()) {
            return Ok(Self::Custom(name.to_owned()));
        }
        Self::OWN.into_iter().find(|event| event.to_string() == text).ok_or(())
    }
}

/// Which of the events that it hears a hook is asked about: all conditions have to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When {
    /// The tool's name is like one of these; empty for every tool.
    pub tools: Vec<Glob>,
    /// The texts of these arguments are like these.
    pub arguments: Vec<(String, Glob)>,
    /// A Starlark expression over `event` and `payload` is true.
    pub expression: Option<String>,
}
