//! The tools of a runtime by name and by alias. One name means one tool: a second is an error that names both sources.

use std::collections::HashMap;

use crate::error::Error;
use crate::source::nearest;
use crate::tool::Tool;

/// The most characters of an unknown name that are told: no tool's own name is longer.
const LONGEST_TOLD: usize = 128;

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

    /// The place of a tool in [`Registry::tools`], if there is one of this name.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The place of a tool in [`Registry::tools`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], with the nearest name.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        self.index(name).ok_or_else(|| Error::UnknownTool {
            name: match name.char_indices().nth(LONGEST_TOLD) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name.to_owned(),
            },
            nearest: nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use crate::tool::tests::plain;

    use super::*;

    #[test]
    fn an_unknown_name_of_any_length_is_told_briefly_and_at_once() {
        let mut registry = Registry::default();
        (0..200).for_each(|n| registry.add(plain(&format!("tool_{n}_{}", "x".repeat(100)))).unwrap());
        let start = Instant::now();
        let error = registry.find(&"é".repeat(3 << 20)).unwrap_err();
        assert!(start.elapsed().as_millis() < 200, "{:?}", start.elapsed());
        assert_eq!(error.to_string(), format!("unknown tool: {}…", "é".repeat(LONGEST_TOLD)));
        registry.add(plain("fs_read")).unwrap();
        let hint = registry.find("fs_raed").unwrap_err().hint().unwrap();
        assert_eq!(hint, "did you mean `fs_read`?");
        assert_eq!((registry.index("fs_read"), registry.index("fs_raed")), (Some(200), None));
    }
}
