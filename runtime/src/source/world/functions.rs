//! Exported functions as tools: all of them if the source is the component itself, and the one that an entry of a manifest
//! names. The descriptor fills in fields that the source leaves open, and the types fill in the rest.

use std::sync::Arc;

use toolcrib_component::functions::Names;
use toolcrib_foundation::text::listed;

use crate::schema::typed as mapping;
use crate::source::diagnostics::Diagnostics;
use crate::source::name;
use crate::tool::typed::Typed;
use crate::tool::{Body, Format, Tool};

use super::program::Functions;
use super::{Component, filled, required_function};

impl Component {
    /// Returns the tools of a component with functions, with its command if it has one.
    pub(super) fn functions(
        self,
        tool: Tool,
        functions: &Functions,
        report: &mut Diagnostics,
    ) -> Result<Vec<Tool>, String> {
        match tool.origin.format {
            Format::Component => self.every(tool, functions, report),
            _ => self.one(tool, functions).map(|tool| vec![tool]),
        }
    }

    fn every(mut self, tool: Tool, functions: &Functions, report: &mut Diagnostics) -> Result<Vec<Tool>, String> {
        let Functions { callable, skipped, is_command } = functions;
        if callable.is_empty() && !is_command {
            return Err(format!("none of its exports is a tool: {}", list_skipped(skipped)));
        }
        if !skipped.is_empty() {
            report.warn(&format!("{} of its exports are not tools: {}", skipped.len(), list_skipped(skipped)));
        }
        let mut tools = Vec::with_capacity(callable.len() + 1);
        if *is_command {
            let described = self.take_descriptor(&tool.name);
            tools.push(filled(tool.clone(), described.as_deref()));
        }
        for (function, Names { short, full }) in callable {
            let mut own = Tool { name: short.clone(), ..tool.clone() };
            if *full != own.name {
                own.interface.identity.aliases.infer(vec![full.clone()]);
            }
            let described = self.take_descriptor(&own.name).or_else(|| self.take_descriptor(full));
            tools.push(with_function(filled(own, described.as_deref()), function));
        }
        match self.descriptors.first() {
            Some(one) => {
                let name = &one.name;
                Err(format!("it describes the tool {name:?}, but exports no function of that name"))
            }
            None => Ok(tools),
        }
    }

    /// The tool of an entry: the function that the second word of its command names, else the one of its own name, else the
    /// only one. A component that is a command too is one unless a function is named.
    fn one(mut self, tool: Tool, functions: &Functions) -> Result<Tool, String> {
        let Functions { callable, is_command, .. } = functions;
        let word = match &tool.body {
            Body::Command { argv, .. } => argv.get(1).cloned(),
            _ => None,
        };
        let find = |word: &str| {
            let means = |(_, (typed, names)): &(usize, &(Arc<Typed>, Names))| {
                let function = &typed.function;
                [&names.short, &names.full, &function.name].iter().any(|name| **name == word)
                    || function.to_string() == word
            };
            let mut found = callable.iter().enumerate().filter(means).map(|(index, _)| index);
            found.next().filter(|_| found.next().is_none())
        };
        let index = match &word {
            Some(word) => find(word),
            None if *is_command => None,
            None => find(&tool.name).or((callable.len() == 1).then_some(0)),
        };
        match index.and_then(|index| callable.get(index)) {
            Some((function, names)) => {
                let described = self.take_descriptor(&names.short).or_else(|| self.take_descriptor(&names.full));
                Ok(with_function(filled(tool, described.as_deref()), function))
            }
            None if *is_command && required_function(&tool).is_none() => {
                let described = self.take_descriptor(&tool.name);
                Ok(filled(tool, described.as_deref()))
            }
            None => {
                let why = no_function(word.as_deref(), functions);
                Err(why)
            }
        }
    }
}

/// Returns the tool with a function as its body.
fn with_function(mut tool: Tool, typed: &Arc<Typed>) -> Tool {
    let function = &typed.function;
    tool.description = tool.description.or_else(|| function.docs.clone());
    tool.parameters = tool.parameters.or_else(|| Some(mapping::arguments(function)));
    if let Some(output) = mapping::output(function) {
        tool.interface.schemas.output_schema.infer(Some(output));
    }
    tool.body = Body::Typed(typed.clone());
    tool
}

/// Returns the reason why an entry names no function.
fn no_function(word: Option<&str>, functions: &Functions) -> String {
    let Functions { callable, skipped, .. } = functions;
    let is_named = |place: &str| word.is_some_and(|word| place == word || place.ends_with(&format!("#{word}")));
    if let Some((place, why)) = skipped.iter().find(|(place, _)| is_named(place)) {
        return format!("`{}` cannot be a tool: {why}", name::shortened(place));
    }
    if callable.is_empty() {
        return format!("none of its component's exports is a tool: {}", list_skipped(skipped));
    }
    let known = listed(callable.iter().map(|(_, names)| format!("`{}`", name::shortened(&names.short))));
    let found = word.map(|word| format!(" and none is named {word:?}")).unwrap_or_default();
    format!("its component has {known}{found}: name one after the component")
}

/// Lists the exports that are no tools, with reasons, as far as one sentence holds them.
fn list_skipped(skipped: &[(String, String)]) -> String {
    if skipped.is_empty() {
        return "it exports no functions".to_owned();
    }
    listed(skipped.iter().map(|(place, why)| format!("`{}` ({why})", name::shortened(place))))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::tool::typed::Function;

    use super::*;

    #[test]
    fn of_many_functions_the_first_are_named() {
        let callable = (0..256).map(|n| {
            let short = format!("f{n}");
            let function =
                Function { interface: None, name: short.clone(), docs: None, params: Vec::new(), result: None };
            (Arc::new(Typed { program: PathBuf::new(), function }), Names { full: short.clone(), short })
        });
        let functions = Functions { callable: callable.collect(), skipped: Vec::new(), is_command: false };
        let why = no_function(Some("x"), &functions);
        assert_eq!(why.matches("`f").count(), 10, "{why}");
        assert!(why.contains("`f8`, `f9`, and 246 more and none is named \"x\": name one"), "{why}");
    }
}
