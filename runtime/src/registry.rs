//! The tools of a runtime by name and by alias. One name means one tool: a second is an error that names both sources.

use std::collections::HashMap;

use crate::error::Error;
use crate::source::nearest;
use crate::tool::Tool;

/// Tools in the order in which they were loaded.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] where the name is taken.
    pub(crate) fn add(&mut self, tool: Tool) -> Result<(), Error> {
        for name in std::iter::once(&tool.name).chain(&tool.interface.identity.aliases.value) {
            if let Some(first) = self.by_name.insert(name.clone(), self.tools.len()) {
                let known = if first == self.tools.len() { &tool } else { &self.tools[first] };
                return Err(Error::Duplicate {
                    name: name.clone(),
                    first: known.origin.describe(),
                    second: tool.origin.describe(),
                });
            }
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The tools in order.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The place of a tool in [`Registry::tools`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], with the nearest name.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        self.by_name.get(name).copied().ok_or_else(|| Error::UnknownTool {
            name: name.to_owned(),
            nearest: nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned),
        })
    }
}
