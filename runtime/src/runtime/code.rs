//! The tools for programs of a model, beside or in place of those that a program can call.

use std::path::PathBuf;

use crate::pipeline::{CallableNames, PreparedTool, builtin, stub_language};
use crate::source::{Diagnostic, Severity};
use crate::stub::{self, StubTool};
use crate::tool::{Builtin, Callers, Fact, Tool};

use super::builder::Builder;

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
        let languages = self.code.iter().map(|code| (code.name.clone(), code.guide.clone())).collect();
        let overview = self.direct.is_some().then(|| overview(&self.code[0].name, tools, prepared));
        let code = builtin::CodeTools { languages, overview };
        let all = builtins.into_iter().map(|builtin| code.tool(builtin));
        let (taken, free): (Vec<Tool>, Vec<Tool>) = all.partition(|own| tools.iter().any(|tool| tool.name == own.name));
        for own in taken {
            let message = format!(
                "a tool of a source is called `{}`: the tool for programs of that name is not offered",
                own.name
            );
            warnings.push(Diagnostic {
                severity: Severity::Warning,
                path: PathBuf::from("code"),
                place: None,
                message,
            });
        }
        free
    }
}

/// Describes the tools that a program can call: their signatures if these are short, else how to find them.
fn overview(language: &str, tools: &[Tool], prepared: &[PreparedTool]) -> String {
    let names = CallableNames::of(tools.iter());
    let search =
        format!("It can call {} tools: find them with `search_tools` and `describe_tool`.", names.iter().len());
    if names.iter().len() > MAX_LISTED {
        return search;
    }
    let useful = names.iter().filter(|(name, index)| {
        let is_useful = prepared[*index].is_callable() && !prepared[*index].grant.is_useless_for(&tools[*index]);
        is_useful && names.find(name) == Some(*index)
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
