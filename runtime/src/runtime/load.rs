//! Loading of the sources when a runtime is built: all of each, or the one tool that is called.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::policy;
use crate::source::{self, LoadedSource};
use crate::tool::{Body, Tool};

use super::builder::Builder;

/// Identifier and content of a source.
type IdentifiedSource = (Arc<Path>, LoadedSource);

impl Builder {
    /// Loads all tools and hooks of the sources.
    ///
    /// # Errors
    ///
    /// The first problem of a source as a whole or of a hook, and, if the builder is strict, of a tool.
    pub(super) fn load_all(&self) -> Result<Vec<IdentifiedSource>, Error> {
        let load = |path| if self.strict { source::load(path) } else { source::load_usable(path) };
        self.sources.iter().map(|path| Ok((policy::source_id(path), load(path)?))).collect()
    }

    /// Loads the tool of [`Builder::only`] alone, if nothing about its calls depends on other tools. These keep their names
    /// and the paths of their programs, which are protected, and are unusable.
    ///
    /// Returns `None` if everything has to be loaded: no tool has the name without its program, hooks or the arguments in
    /// rules concern other tools, the tool is or calls others, or its source is reviewed as a whole.
    ///
    /// # Errors
    ///
    /// The first problem of a source as a whole.
    pub(super) fn load_only_tool(&self) -> Result<Option<Vec<IdentifiedSource>>, Error> {
        let Some(name) = self.only.as_ref().map(|name| self.routes.get(name).unwrap_or(name)) else { return Ok(None) };
        if self.strict || !self.hooks.is_empty() || self.policy.rules().have_arguments() {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(self.sources.len());
        let mut found = 0;
        for path in &self.sources {
            let loaded = source::load_tool(path, name)?;
            let id = policy::source_id(path);
            let tools = loaded.tools.iter().filter(|tool| tool.unusable.is_none());
            found += tools.clone().filter(|tool| tool.is_named(name)).count();
            let is_whole = tools.clone().next().is_some() && self.trusted.reviews(&id);
            let depends =
                tools.clone().filter(|tool| tool.is_named(name)).any(|tool| depends_on_others(tool, &loaded.tools));
            if is_whole || depends || !loaded.hooks.is_empty() || !loaded.policies.is_empty() {
                return Ok(None);
            }
            all.push((id, loaded));
        }
        Ok((found == 1).then_some(all))
    }
}

/// Returns `true` if a call of the tool can concern others of its source: a script runs programs and adds tools, a rich tool
/// calls those that it requests, and a tool of the same component may claim its calls.
fn depends_on_others(tool: &Tool, all: &[Tool]) -> bool {
    match &tool.body {
        Body::Command { .. } | Body::Typed(_) => false,
        Body::Rich(_) => {
            let is_sibling = |other: &&Tool| other.body.program() == tool.body.program();
            !tool.requested.declared || !tool.requested.tools.is_empty() || all.iter().filter(is_sibling).count() > 1
        }
        _ => true,
    }
}
