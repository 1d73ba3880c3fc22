//! Typed functions for programs that call tools.

use std::process::ExitCode;

use anyhow::bail;
use toolcrib::stub::{StubLanguage, StubTool, stubs};
use toolcrib::{Runtime, Tool};
use toolcrib_base::render;

/// Prints the stubs of tools, and a warning for each that no program can call.
pub(super) fn print<'r>(
    runtime: &'r Runtime,
    tools: impl Iterator<Item = &'r Tool>,
    language: StubLanguage,
    notes: bool,
) -> anyhow::Result<ExitCode> {
    if notes {
        bail!("--notes: definitions for programs are text, without notes");
    }
    let mut named = Vec::new();
    for tool in tools {
        match runtime.name_in_programs(&tool.name) {
            Some(name) => named.push((name, tool, tool.model_input_schema())),
            None => {
                render::warning(&format!("`{}`: no program can call it by its name", render::one_line(&tool.name)));
            }
        }
    }
    let tools: Vec<StubTool<'_>> =
        named.iter().map(|(name, tool, input)| StubTool::of(name, tool, input.as_deref())).collect();
    render::print(stubs(language, &tools).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
