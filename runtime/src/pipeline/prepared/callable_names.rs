//! Names of tools in programs that call them.

use std::collections::{HashMap, HashSet};

use crate::tool::{Body, Callers, Tool, Visibility};

/// Names in programs of a list of tools, which have their indices in that list.
#[derive(Debug, Default)]
pub(crate) struct CallableNames {
    /// Names in the order of the tools.
    ordered: Vec<(String, usize)>,
    indices: HashMap<String, usize>,
}

impl CallableNames {
    /// Names the tools that programs may call by identifiers. A name that is an identifier belongs to its tool; another gets `_`
    /// for its other characters, unless the identifier is taken or two names would share it.
    pub(crate) fn of<'t>(tools: impl Iterator<Item = &'t Tool>) -> Self {
        let tools: Vec<(usize, &Tool)> = tools.enumerate().filter(|(_, tool)| is_callable(tool)).collect();
        let exact: HashSet<&str> = tools.iter().map(|(_, tool)| tool.name.as_str()).collect();
        let named: Vec<(String, usize, &Tool)> =
            tools.iter().map(|(index, tool)| (identifier(&tool.name), *index, *tool)).collect();
        let mut count: HashMap<&str, usize> = HashMap::new();
        for (name, ..) in &named {
            *count.entry(name).or_default() += 1;
        }
        let is_own = |name: &str, tool: &Tool| name == tool.name || count[name] == 1 && !exact.contains(name);
        let own = named.iter().filter(|(name, _, tool)| is_own(name, tool));
        let ordered: Vec<(String, usize)> = own.map(|(name, index, _)| (name.clone(), *index)).collect();
        let indices = ordered.iter().cloned().collect();
        Self { ordered, indices }
    }

    /// Returns the index of the tool with a name in programs.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// Returns the name in programs of the tool with an index.
    pub(crate) fn name_of(&self, index: usize) -> Option<&str> {
        let at = self.ordered.binary_search_by_key(&index, |(_, index)| *index).ok()?;
        Some(&self.ordered[at].0)
    }

    /// Returns the names and indices, in the order of the tools.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.ordered.iter().map(|(name, index)| (name.as_str(), *index))
    }
}

/// Returns `true` if programs may call a tool. A call of one that is denied is refused and recorded, as a direct call is.
pub(crate) fn is_callable(tool: &Tool) -> bool {
    let discovery = &tool.interface.discovery;
    !matches!(tool.body, Body::Builtin(_))
        && discovery.schema_visibility.value != Visibility::Internal
        && discovery.callers.value != Callers::Direct
}

/// Returns `true` for a character of an identifier.
pub(crate) fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the name of a tool with `_` for the characters that no identifier has.
pub(crate) fn identifier(name: &str) -> String {
    name.replace(|c: char| !is_part(c), "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::plain;

    #[test]
    fn an_identifier_belongs_to_the_tool_of_that_name() {
        let tools = ["fs+write", "fs_write", "a.b", "c-d", "c/d", "é"].map(plain);
        let names = CallableNames::of(tools.iter());
        assert_eq!(names.find("fs_write"), Some(1), "no other name takes it");
        assert_eq!((names.find("a_b"), names.find("_")), (Some(2), Some(5)));
        assert_eq!(names.find("c_d"), None, "two names would share it");
    }

    #[test]
    fn a_tool_for_direct_calls_alone_has_no_name() {
        let mut tools = ["a", "b"].map(plain);
        tools[0].interface.discovery.callers.value = Callers::Direct;
        let names = CallableNames::of(tools.iter());
        assert_eq!((names.find("a"), names.find("b")), (None, Some(1)));
    }
}
