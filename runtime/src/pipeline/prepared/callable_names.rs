//! Names of tools in programs that call them.

use std::collections::{HashMap, HashSet};

use crate::tool::{Body, Callers, Tool, Visibility};

/// Names in programs of a list of tools, which have their indices in that list.
#[derive(Debug, Default)]
pub(crate) struct CallableNames {
    /// Names of the tools themselves, in the order of the tools.
    ordered: Vec<(String, usize)>,
    /// Names in calls and indices, by the names in programs; also of aliases and routes.
    called: HashMap<String, (String, usize)>,
}

impl CallableNames {
    /// Names the tools that programs may call by identifiers. A name that is an identifier belongs to its tool; another gets `_`
    /// for its other characters, unless the identifier is taken or two names would share it. Aliases, and the names of `routes` to
    /// tools, get what the names of tools leave.
    pub(crate) fn of<'t>(tools: impl Iterator<Item = &'t Tool>, routes: &'t HashMap<String, String>) -> Self {
        let tools: Vec<(usize, &Tool)> = tools.enumerate().filter(|(_, tool)| may_be_called(tool)).collect();
        // A route precedes the tool of its name.
        let is_unrouted = |name: &str| !routes.contains_key(name);
        let names = tools.iter().map(|(index, tool)| (tool.name.as_str(), *index));
        let ordered = owned(names.filter(|(name, _)| is_unrouted(name)));
        let by_name: HashMap<&str, usize> = tools.iter().map(|(index, tool)| (tool.name.as_str(), *index)).collect();
        let aliases = tools.iter().flat_map(|(index, tool)| {
            tool.interface.identity.aliases.value.iter().map(|alias| (alias.as_str(), *index))
        });
        let routed = routes.iter().filter_map(|(name, tool)| Some((name.as_str(), *by_name.get(tool.as_str())?)));
        let mut others: Vec<_> = aliases.filter(|(name, _)| is_unrouted(name)).chain(routed).collect();
        others.sort_unstable();
        others.dedup();
        let mut called = HashMap::new();
        for (identifier, name, index) in &ordered {
            called.insert(identifier.clone(), ((*name).to_owned(), *index));
        }
        let taken: HashSet<String> = tools.iter().map(|(_, tool)| identifier(&tool.name)).collect();
        let free = owned(others.into_iter());
        for (identifier, name, index) in free.into_iter().filter(|(free, ..)| !taken.contains(free)) {
            called.entry(identifier).or_insert_with(|| (name.to_owned(), index));
        }
        // A route may have the name of another tool.
        for (name, tool) in routes {
            if let Some(index) = by_name.get(tool.as_str()).filter(|_| name.chars().all(is_part)) {
                called.insert(name.clone(), (name.clone(), *index));
            }
        }
        let ordered = ordered.into_iter().map(|(identifier, _, index)| (identifier, index)).collect();
        Self { ordered, called }
    }

    /// Returns the name in calls, and the index, of the tool with a name in programs.
    pub(crate) fn find(&self, name: &str) -> Option<(&str, usize)> {
        self.called.get(name).map(|(called, index)| (called.as_str(), *index))
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
pub(crate) fn may_be_called(tool: &Tool) -> bool {
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

/// Returns the names that have their identifier to themselves, each with it.
fn owned<'n>(names: impl Iterator<Item = (&'n str, usize)>) -> Vec<(String, &'n str, usize)> {
    let named: Vec<_> = names.map(|(name, index)| (identifier(name), name, index)).collect();
    let exact: HashSet<&str> = named.iter().map(|(_, name, _)| *name).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (identifier, ..) in &named {
        *count.entry(identifier).or_default() += 1;
    }
    let is_own =
        |identifier: &str, name: &str| identifier == name || count[identifier] == 1 && !exact.contains(identifier);
    let own: Vec<bool> = named.iter().map(|(identifier, name, _)| is_own(identifier, name)).collect();
    named.into_iter().zip(own).filter(|(_, is_own)| *is_own).map(|(named, _)| named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::plain;

    fn names(tools: &[Tool], routes: &[(&str, &str)]) -> CallableNames {
        let routes = routes.iter().map(|(name, tool)| ((*name).to_owned(), (*tool).to_owned())).collect();
        CallableNames::of(tools.iter(), &routes)
    }

    #[test]
    fn an_identifier_belongs_to_the_tool_of_that_name() {
        let tools = ["fs+write", "fs_write", "a.b", "c-d", "c/d", "é"].map(plain);
        let names = names(&tools, &[]);
        assert_eq!(names.find("fs_write"), Some(("fs_write", 1)), "no other name takes it");
        assert_eq!((names.find("a_b"), names.find("_")), (Some(("a.b", 2)), Some(("é", 5))));
        assert_eq!(names.find("c_d"), None, "two names would share it");
    }

    #[test]
    fn a_tool_for_direct_calls_alone_has_no_name() {
        let mut tools = ["a", "b"].map(plain);
        tools[0].interface.discovery.callers.value = Callers::Direct;
        let names = names(&tools, &[]);
        assert_eq!((names.find("a"), names.find("b")), (None, Some(("b", 1))));
    }

    #[test]
    fn aliases_and_routes_get_what_the_names_leave() {
        let mut tools = ["a", "b", "c"].map(plain);
        tools[0].interface.identity.aliases.value = vec!["x.y".to_owned(), "b".to_owned(), "z".to_owned()];
        let names = names(&tools, &[("z", "c"), ("r", "b"), ("gone", "nothing"), ("c", "a")]);
        assert_eq!(names.find("x_y"), Some(("x.y", 0)));
        assert_eq!(names.find("b"), Some(("b", 1)), "an alias takes no name of a tool");
        assert_eq!((names.find("z"), names.find("r")), (Some(("z", 2)), Some(("r", 1))), "a route precedes an alias");
        assert_eq!((names.find("c"), names.find("gone")), (Some(("c", 0)), None));
        assert_eq!(names.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    }
}
