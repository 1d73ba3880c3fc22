//! Hooks in the order in which they run: those that scripts of the run added, then all others by priority.

use std::sync::Arc;

use crate::hook::Hook;
use crate::pipeline::prepared::ScriptHook;

/// Hooks by priority, then in the order in which they were added.
pub(crate) struct HookChain(Vec<ChainedHook>);

/// A hook of the chain.
pub(crate) enum ChainedHook {
    /// A hook that the embedder implements.
    Embedder(Arc<dyn Hook>),
    /// A hook that is a script.
    Script(Box<ScriptHook>),
}

impl ChainedHook {
    fn priority(&self) -> i32 {
        match self {
            Self::Embedder(hook) => hook.priority(),
            Self::Script(script) => script.definition.priority,
        }
    }

    /// Returns the name of the hook.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Embedder(hook) => hook.name(),
            Self::Script(script) => script.name(),
        }
    }

    /// Returns the script hook, if it is one.
    pub(crate) fn script(&self) -> Option<&ScriptHook> {
        match self {
            Self::Embedder(_) => None,
            Self::Script(script) => Some(script),
        }
    }
}

impl HookChain {
    /// Sorts hooks by priority.
    pub(crate) fn new(mut hooks: Vec<ChainedHook>) -> Self {
        hooks.sort_by_key(ChainedHook::priority);
        Self(hooks)
    }

    /// Returns all hooks of a conversation. Hooks that scripts of the run `added` come first: the others judge the arguments
    /// and answers that these change.
    pub(crate) fn all<'a>(&'a self, added: impl Iterator<Item = &'a ChainedHook>) -> Vec<&'a ChainedHook> {
        let mut all: Vec<_> = added.collect();
        all.sort_by_key(|hook| hook.priority());
        all.extend(&self.0);
        all
    }

    /// Returns all script hooks of a conversation.
    pub(crate) fn scripts<'a>(&'a self, added: impl Iterator<Item = &'a ChainedHook>) -> Vec<&'a ScriptHook> {
        self.all(added).into_iter().filter_map(ChainedHook::script).collect()
    }

    /// Returns the script hooks that sources define.
    pub(crate) fn of_sources(&self) -> impl Iterator<Item = &ScriptHook> {
        self.0.iter().filter_map(ChainedHook::script)
    }
}
