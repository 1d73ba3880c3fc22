//! The tools of a runtime by name and by alias. One name means one tool: a second, or one that looks like it, is an error
//! that names both sources.

mod likeness;

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
    /// What each name looks like, with the place of its tool and the name.
    by_likeness: HashMap<String, (usize, String)>,
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] where the name is taken, [`Error::LookAlike`] where one is that looks like it.
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
        for name in std::iter::once(&tool.name).chain(&tool.interface.identity.aliases.value) {
            for likeness in likeness::of(name) {
                let (at, like) = self.by_likeness.entry(likeness).or_insert((self.tools.len(), name.clone()));
                // The names of one tool may be like one another.
                if let Some(known) = self.tools.get(*at) {
                    return Err(Error::LookAlike {
                        name: name.clone(),
                        like: like.clone(),
                        first: known.origin.describe(),
                        second: tool.origin.describe(),
                    });
                }
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
    fn a_name_that_looks_like_another_is_refused_and_one_tool_may_have_both() {
        let mut registry = Registry::default();
        let mut tool = plain("fs_read");
        tool.interface.identity.aliases.value = vec!["fs-read".into(), "FS_READ".into()];
        registry.add(tool).unwrap();
        for like in ["Fs_Read", "fs.read", "fs_r\u{435}ad"] {
            let error = registry.add(plain(like)).unwrap_err();
            assert!(error.to_string().contains(like) && error.to_string().contains("`fs_read`"), "{error}");
        }
        assert!(matches!(registry.add(plain("fs-read")), Err(Error::Duplicate { .. })));
        registry.add(plain("fs_write")).unwrap();
        assert_eq!(registry.tools().len(), 2);
    }

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
