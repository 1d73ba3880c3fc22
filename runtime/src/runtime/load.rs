//! Loading sources when a runtime is built: each in full, or the one tool that is called.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::policy;
use crate::source::{self, LoadedSource};
use crate::tool::{Body, Tool};

use super::builder::Builder;

/// Identifier and content of a source.
pub(super) type IdentifiedSource = (Arc<Path>, LoadedSource);

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

    /// Loads the tool of [`Builder::only`] alone, if nothing about its calls depends on other tools, and returns it with its
    /// name. The others keep their names and the paths of their programs, which are protected.
    ///
    /// Returns `None` if everything has to be loaded: no tool, or more than one, has the name without its program, hooks or the
    /// arguments in rules concern other tools, or the tool is or calls others.
    ///
    /// # Errors
    ///
    /// The first problem of a source as a whole.
    pub(super) fn load_only_tool(&self) -> Result<Option<(String, Vec<IdentifiedSource>)>, Error> {
        let Some(name) = self.only.as_ref().map(|name| self.routes.get(name).unwrap_or(name)) else { return Ok(None) };
        if self.strict || !self.hooks.is_empty() || self.policy.rules().have_arguments() {
            return Ok(None);
        }
        let mut all: Vec<IdentifiedSource> = Vec::with_capacity(self.sources.len());
        for path in &self.sources {
            let id = policy::source_id(path);
            let loaded = source::load_tool(path, name, self.trusted.reviews_whole(&id, name))?;
            // A bundle is reviewed with everything in it, wherever the review of the tool comes from.
            let is_reviewed_bundle = loaded.bundle.is_some() && self.trusted.reviews_tool(&id, name);
            if !loaded.hooks.is_empty() || !loaded.policies.is_empty() || is_reviewed_bundle {
                return Ok(None);
            }
            all.push((id, loaded));
        }
        let tools = || all.iter().flat_map(|(_, loaded)| &loaded.tools);
        let mut named = tools().filter(|tool| tool.unusable.is_none() && tool.is_named(name));
        let stands_alone = match (named.next(), named.next()) {
            (Some(tool), None) => !depends_on_others(tool, tools()),
            _ => false,
        };
        Ok(stands_alone.then(|| (name.clone(), all)))
    }
}

/// Returns `true` if a call of the tool can concern others: a script runs programs and adds tools, a rich tool calls
/// those that it requests, and a tool in the same component, in any source, may claim its calls.
fn depends_on_others<'a>(tool: &Tool, all: impl Iterator<Item = &'a Tool>) -> bool {
    match &tool.body {
        Body::Command { .. } | Body::Typed(_) | Body::Remote(_) | Body::Skill(_) | Body::SkillScripts(_) => false,
        Body::Rich(_) => {
            let is_of_component = |other: &&Tool| other.body.program() == tool.body.program();
            !tool.requested.declared || !tool.requested.tools.is_empty() || all.filter(is_of_component).count() > 1
        }
        _ => true,
    }
}
