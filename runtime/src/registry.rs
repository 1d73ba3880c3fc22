//! Tools of a runtime by name and alias. A name identifies one tool: a second tool of the name, or of a confusable one, is an
//! error that names both sources.

mod confusables;

use std::collections::HashMap;
use std::path::Path;

use toolcrib_foundation::text::{MAX_NAME, truncate};

use crate::error::{Error, UnknownToolWording};
use crate::source::{load_usable, nearest};
use crate::tool::{Tool, Trust, Visibility};

/// Tools in the order in which they were loaded.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    /// Name and index of the first tool by each skeleton among its names.
    by_skeleton: HashMap<String, (usize, String)>,
}

/// Checks that the tools of several sources can be loaded together: no two have names that are equal or look alike.
///
/// # Errors
///
/// [`Error::Duplicate`] and [`Error::LookAlike`], and the errors of [`load_usable`](crate::source::load_usable).
pub fn check_names(paths: &[impl AsRef<Path>]) -> Result<(), Error> {
    let mut tools = Vec::new();
    for path in paths {
        tools.extend(load_usable(path.as_ref())?.tools.into_iter().map(|tool| (tool, ())));
    }
    Registry::of(tools).map(|_| ())
}

impl Registry {
    /// Creates a registry of tools in their order, and returns it with the tools' companions. A tool that yields, and
    /// an unusable tool with a provisional name, take no name from other tools: they come last, or are left out.
    ///
    /// # Errors
    ///
    /// See [`Registry::add`].
    pub(crate) fn of<T>(mut tools: Vec<(Tool, T)>) -> Result<(Self, Vec<T>), Error> {
        let order = |tool: &Tool| match tool.unusable.is_some() && tool.origin.provisional_name {
            true => 2,
            false => u8::from(tool.origin.yields),
        };
        tools.sort_by_key(|(tool, _)| order(tool));
        let (mut registry, mut companions) = (Self::default(), Vec::with_capacity(tools.len()));
        for (tool, companion) in tools {
            if order(&tool) > 0 && registry.admits(&tool).is_err() {
                continue;
            }
            registry.add(tool)?;
            companions.push(companion);
        }
        Ok((registry, companions))
    }

    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] if another tool has one of its names, [`Error::LookAlike`] if another has a confusable name.
    pub(crate) fn add(&mut self, tool: Tool) -> Result<(), Error> {
        self.admits(&tool)?;
        let index = self.tools.len();
        for name in tool.names() {
            if self.by_name.insert(name.to_owned(), index).is_some() {
                return Err(duplicate(name, &tool, &tool));
            }
            for skeleton in confusables::skeletons(name) {
                self.by_skeleton.entry(skeleton).or_insert((index, name.to_owned()));
            }
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Checks that a tool can be added. The names of one tool may be confusable with one another.
    ///
    /// # Errors
    ///
    /// See [`Registry::add`].
    pub(crate) fn admits(&self, tool: &Tool) -> Result<(), Error> {
        for name in tool.names() {
            if let Some(first) = self.by_name.get(name) {
                return Err(duplicate(name, &self.tools[*first], tool));
            }
        }
        for name in tool.names() {
            for skeleton in confusables::skeletons(name) {
                if let Some((index, like)) = self.by_skeleton.get(&skeleton) {
                    return Err(Error::LookAlike {
                        name: name.to_owned(),
                        like: like.clone(),
                        first: self.tools[*index].origin.describe(),
                        second: tool.origin.describe(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Tools in order.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the index of a tool in [`Registry::tools`].
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the index of a tool in [`Registry::tools`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownTool`], with the nearest name.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        self.index(name).ok_or_else(|| Error::UnknownTool {
            // No tool has a longer name.
            name: truncate(name, MAX_NAME),
            wording: self.wording(),
            nearest: self.meant(name).map(str::to_owned),
        })
    }

    /// Returns the name of a tool for models that an unknown name means: the same one in another case, with other separators or
    /// after a namespace, as in `functions.calculate`, or else the nearest.
    fn meant(&self, name: &str) -> Option<&str> {
        if name.len() > MAX_NAME * size_of::<char>() {
            return None;
        }
        let is_internal = |tool: &&Tool| tool.interface.discovery.schema_visibility.value == Visibility::Internal;
        let known = || self.tools.iter().filter(|tool| !is_internal(tool)).flat_map(|tool| tool.names());
        let plain = |name: &str| name.to_lowercase().replace('-', "_");
        let last = plain(name.rsplit(['.', ':', '/']).next().unwrap_or(name));
        known().find(|known| plain(known) == last).or_else(|| nearest(name, known()))
    }

    /// Returns the wording that the sources of all tools for models share, or else the default.
    fn wording(&self) -> UnknownToolWording {
        let is_for_models = |tool: &&Tool| {
            let visibility = tool.interface.discovery.schema_visibility.value;
            tool.origin.trust != Trust::Host && visibility != Visibility::Internal
        };
        let mut wordings = self.tools.iter().filter(is_for_models).map(|tool| tool.origin.wording);
        let first = wordings.next().unwrap_or_default();
        if wordings.all(|wording| wording == first) { first } else { UnknownToolWording::default() }
    }
}

fn duplicate(name: &str, first: &Tool, second: &Tool) -> Error {
    Error::Duplicate { name: name.to_owned(), first: first.origin.describe(), second: second.origin.describe() }
}

#[cfg(test)]
mod tests {
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
        // A comparison with each name would not end.
        let error = registry.find(&"é".repeat(3 << 20)).unwrap_err();
        assert_eq!(error.to_string(), format!("unknown tool: {}…", "é".repeat(MAX_NAME - 1)));
        registry.add(plain("fs_read")).unwrap();
        let hint = registry.find("fs_raed").unwrap_err().hint().unwrap();
        assert_eq!(hint, "did you mean `fs_read`?");
        assert_eq!((registry.index("fs_read"), registry.index("fs_raed")), (Some(200), None));
    }
}
