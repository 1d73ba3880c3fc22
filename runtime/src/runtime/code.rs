//! The tools for programs of a model, beside or in place of those that a program can call.

use std::path::PathBuf;

use crate::pipeline::{CallableNames, PreparedTool, builtin, stub_language};
use crate::source::{Diagnostic, Severity};
use crate::stub::{self, StubTool};
use crate::tool::{Builtin, Callers, Fact, Tool};

use super::builder::Builder;

/// Names of the tools for programs; without the first the others are of no use.
const NAMES: [&str; 3] = ["run_code", "search_tools", "describe_tool"];
/// Maximum bytes of the signatures of all tools in the description of `run_code`. Beyond it a model searches for them.
const MAX_OVERVIEW: usize = 8 << 10;
/// Maximum number of tools whose signatures are tried.
const MAX_LISTED: usize = 200;

impl Builder {
    /// Returns the tools for programs over the tools of all sources, and prepares these for code mode. A tool of a source keeps its
    /// name, with a warning.
    pub(super) fn code_tools(
        &self,
        tools: &mut [Tool],
        prepared: &mut [PreparedTool],
        warnings: &mut Vec<Diagnostic>,
    ) -> Vec<Tool> {
        if self.code.is_empty() {
            return Vec::new();
        }
        let is_taken = |own: &str| tools.iter().any(|tool| tool.name == own);
        let taken: Vec<&str> = NAMES.into_iter().filter(|own| is_taken(own)).collect();
        for own in &taken {
            let message =
                format!("a tool of a source is called `{own}`: the tool for programs of that name is not offered");
            let (severity, path) = (Severity::Warning, PathBuf::from("code"));
            warnings.push(Diagnostic { severity, path, place: None, message });
        }
        // Without the tool that runs programs, the others are of no use.
        if taken.contains(&NAMES[0]) {
            return Vec::new();
        }
        let mut builtins = vec![Builtin::RunCode];
        if let Some(direct) = &self.direct {
            builtins.extend([Builtin::SearchTools, Builtin::DescribeTool]);
            // Programs find all tools.
            prepared.iter_mut().for_each(|prepared| prepared.deferred = false);
            let is_direct = |tool: &&mut Tool| direct.iter().any(|glob| glob.is_match(&tool.name));
            for tool in tools.iter_mut().filter(is_direct) {
                let callers = &mut tool.interface.discovery.callers;
                if callers.value == Callers::Both {
                    *callers = Fact::declared(Callers::Both);
                }
            }
        }
        let languages: Vec<_> = self.code.iter().map(|code| (code.name.clone(), code.guide.clone())).collect();
        let names = CallableNames::of(tools.iter(), &self.routes);
        let overview = self.direct.is_some().then(|| overview(&languages[0].0, &names, tools, prepared));
        let code = builtin::CodeTools { languages, overview };
        let all = builtins.into_iter().map(|builtin| code.tool(builtin));
        all.filter(|own| !tools.iter().any(|tool| tool.name == own.name)).collect()
    }
}

/// Describes the tools that a program can call: their signatures if these are short, else how to find them.
fn overview(language: &str, names: &CallableNames, tools: &[Tool], prepared: &[PreparedTool]) -> String {
    let search =
        format!("It can call {} tools: find them with `search_tools` and `describe_tool`.", names.iter().len());
    if names.iter().len() > MAX_LISTED {
        return search;
    }
    let useful = names.iter().filter(|(name, index)| {
        let is_useful = prepared[*index].is_callable() && !prepared[*index].grant.is_useless_for(&tools[*index]);
        is_useful && names.find(name).is_some_and(|(_, found)| found == *index)
    });
    let mut outlines = String::new();
    for (name, index) in useful {
        let input = tools[index].model_input_schema();
        outlines += &stub::outline(stub_language(language), &StubTool::of(name, &tools[index], input.as_deref()));
        if outlines.len() > MAX_OVERVIEW {
            return search;
        }
    }
    format!("Functions of `tools`; `describe_tool` says more about them:\n{}", outlines.trim_end())
}
