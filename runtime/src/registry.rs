//! The tools of a runtime by name and by alias. One name means one tool: a second, or one that looks like it, is an error
//! that names both sources.

mod confusables;

use std::collections::HashMap;

use crate::error::Error;
use crate::source::nearest;
use crate::tool::{Format, Tool, Visibility};

/// The most characters of an unknown name that are told: no tool's own name is longer.
const MAX_TOLD_LEN: usize = 128;

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
        self.admits(&tool)?;
        let at = self.tools.len();
        for name in names(&tool) {
            if self.by_name.insert(name.to_owned(), at).is_some() {
                return Err(duplicate(name, &tool, &tool));
            }
            for likeness in confusables::of(name) {
                self.by_likeness.entry(likeness).or_insert((at, name.to_owned()));
            }
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Whether a tool could be added: none has its names, and none looks like it. The names of one tool may be like one
    /// another.
    ///
    /// # Errors
    ///
    /// See [`Registry::add`].
    pub(crate) fn admits(&self, tool: &Tool) -> Result<(), Error> {
        for name in names(tool) {
            if let Some(first) = self.by_name.get(name) {
                return Err(duplicate(name, &self.tools[*first], tool));
            }
        }
        for name in names(tool) {
            for likeness in confusables::of(name) {
                if let Some((at, like)) = self.by_likeness.get(&likeness) {
                    return Err(Error::LookAlike {
                        name: name.to_owned(),
                        like: like.clone(),
                        first: self.tools[*at].origin.describe(),
                        second: tool.origin.describe(),
                    });
                }
            }
        }
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
            name: match name.char_indices().nth(MAX_TOLD_LEN) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name.to_owned(),
            },
            artifacts: self.is_of_artifacts(),
            nearest: nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned),
        })
    }
}

impl Registry {
    /// Whether all tools that a source brought for models are artifacts, whose format has words of its own.
    fn is_of_artifacts(&self) -> bool {
        let is_shown = |tool: &&Tool| {
            let visibility = tool.interface.discovery.schema_visibility.value;
            tool.origin.format != Format::Builtin && visibility != Visibility::Internal
        };
        let mut sourced = self.tools.iter().filter(is_shown).peekable();
        sourced.peek().is_some() && sourced.all(|tool| tool.origin.format == Format::Markdown)
    }
}

fn names(tool: &Tool) -> impl Iterator<Item = &str> {
    std::iter::once(&tool.name).chain(&tool.interface.identity.aliases.value).map(String::as_str)
}

fn duplicate(name: &str, first: &Tool, second: &Tool) -> Error {
    Error::Duplicate { name: name.to_owned(), first: first.origin.describe(), second: second.origin.describe() }
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
        assert_eq!(error.to_string(), format!("unknown tool: {}…", "é".repeat(MAX_TOLD_LEN)));
        registry.add(plain("fs_read")).unwrap();
        let hint = registry.find("fs_raed").unwrap_err().hint().unwrap();
        assert_eq!(hint, "did you mean `fs_read`?");
        assert_eq!((registry.index("fs_read"), registry.index("fs_raed")), (Some(200), None));
    }
}
