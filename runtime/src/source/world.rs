//! A program's tools: an entry of a source names a program, and the program's bytes complete the entry. A component
//! with the contract of rich tools may hold several tools; a command holds one. The entry takes precedence, and the
//! descriptor in the component fills in the fields that the entry leaves open.

mod descriptor;
mod functions;
mod program;
mod unfit;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_component::Language;
use toolcrib_foundation::text::listed;

use crate::error::Error;
use crate::tool::{Body, Capabilities, Disabled, Format, INTERPRETER, Interpreter, Rich, RichExports, Tool};

use super::diagnostics::{Diagnostics, ScopedDiagnostic, confine};
use super::{Diagnostic, Severity, files};

use descriptor::Descriptor;
use program::{Contract, Kind, Program, Unusable};

/// The programs of one source. Each is read once, however many entries name it.
#[derive(Default)]
pub(super) struct ProgramCache(HashMap<PathBuf, CachedProgram>);

/// A program that was read.
struct CachedProgram {
    program: Result<Arc<Program>, Unusable>,
    /// Digest that a program in a bundle must have.
    pin: Option<Arc<str>>,
    /// `true` if its problems were reported with the first entry that names it.
    is_reported: bool,
}

impl ProgramCache {
    /// Expands an entry into the tools of its program, with their problems. An entry with an error stays as an unusable tool.
    pub(super) fn expand(&mut self, mut tool: Tool) -> (Vec<Tool>, Vec<ScopedDiagnostic>) {
        let Some(path) = tool.body.program().filter(|_| tool.unusable.is_none()).map(Path::to_path_buf) else {
            return (vec![tool], Vec::new());
        };
        let known = self.0.entry(path).or_insert_with_key(|path| CachedProgram {
            program: Program::read(path).map(Arc::new),
            pin: files::bundled_facts(path).map(|(digest, _)| Arc::from(digest)),
            is_reported: false,
        });
        tool.origin.pin.clone_from(&known.pin);
        let is_reported = std::mem::replace(&mut known.is_reported, true);
        let expanded = match &known.program {
            Ok(program) => {
                tool.imports.clone_from(&program.imports);
                tools_of(program, &tool, is_reported)
            }
            Err(unusable) => Err(vec![unusable.diagnostic(&tool)]),
        };
        expanded.unwrap_or_else(|mut problems| {
            let unusable = confine(&mut problems).map(Arc::new);
            (vec![Tool { unusable, ..tool }], problems)
        })
    }
}

/// Returns the tools of an entry with warnings, or its errors. The problems of a program are reported once, so those that are
/// reported already are reduced to the first.
fn tools_of(
    program: &Program,
    tool: &Tool,
    is_reported: bool,
) -> Result<(Vec<Tool>, Vec<ScopedDiagnostic>), Vec<ScopedDiagnostic>> {
    if let Some(why) = &program.unlinked {
        return Err(vec![Unusable::Unrunnable(why.clone()).diagnostic(tool)]);
    }
    let path = tool.body.program().unwrap_or(Path::new("")).to_path_buf();
    let is_of_functions = matches!(&program.contract, Contract::Known { kind: Kind::Functions(_), .. });
    if let Some(function) = required_function(tool).filter(|_| !is_of_functions) {
        let why = format!("its component exports no functions, and `function` names {function:?}");
        return Err(vec![problem(tool, why)]);
    }
    let mut report = Diagnostics::new(&path);
    let mut tools = match &program.contract {
        Contract::Unknown => vec![tool.clone()],
        Contract::Known { kind, described, problems } => {
            if let Some(first) = problems.iter().find(|noted| noted.problem.severity == Severity::Error) {
                return Err(if is_reported { vec![first.clone()] } else { problems.clone() });
            }
            if !is_reported {
                report.problems.clone_from(problems);
            }
            let component = Component { program: path, descriptors: described.clone() };
            let tools = match kind {
                Kind::Rich(says) => component.rich(tool.clone(), *says),
                Kind::Functions(Ok(functions)) => component.functions(tool.clone(), functions, &mut report),
                Kind::Functions(Err(why)) => Err(why.clone()),
                Kind::Command => component.command(tool.clone()),
                Kind::Interpreter(Ok(language)) => Ok(vec![component.interpreter(tool.clone(), language)]),
                Kind::Interpreter(Err(why)) => Err(why.clone()),
            };
            tools.map_err(|why| vec![problem(tool, why)])?
        }
    };
    let has_command_line = matches!(tool.body, Body::Command { command_line: Some(_), .. });
    if has_command_line && !tools.iter().all(|tool| matches!(tool.body, Body::Command { .. })) {
        let why = "its component is no command, and argv, stdin, output and successCodes are for commands";
        return Err(vec![problem(tool, why.to_owned())]);
    }
    if let Some(why) = &program.uncallable {
        for tool in &mut tools {
            let mut problems = [Unusable::Unrunnable(why.clone()).diagnostic(tool)];
            tool.unusable = confine(&mut problems).map(Arc::new);
            report.problems.extend(problems);
        }
    }
    Ok((tools, report.problems))
}

impl Unusable {
    /// Returns the problem of a tool with this program.
    fn diagnostic(&self, tool: &Tool) -> ScopedDiagnostic {
        let program = tool.body.program().unwrap_or(Path::new("")).display().to_string();
        match self {
            Self::Unavailable(reason) => {
                let fault = Error::Unavailable { name: tool.name.clone(), reason: reason.clone(), program };
                let noted = problem(tool, String::new());
                let problem = Diagnostic { message: fault.to_string(), ..noted.problem };
                ScopedDiagnostic { problem, fault: Some(fault), reason: Some(reason.clone()), ..noted }
            }
            Self::Unrunnable(why) if tool.origin.format == Format::Component => problem(tool, why.clone()),
            Self::Unrunnable(why) => {
                let noted = problem(tool, format!("program {program:?}: {why}"));
                ScopedDiagnostic { reason: Some(why.clone()), ..noted }
            }
        }
    }
}

/// A component with its descriptors.
struct Component {
    program: PathBuf,
    descriptors: Vec<Arc<Descriptor>>,
}

impl Component {
    /// Returns the tools of a component with the rich tool contract.
    fn rich(self, mut tool: Tool, exports: RichExports) -> Result<Vec<Tool>, String> {
        let program = self.program.clone();
        let body = |name: &str, exports: RichExports| {
            Body::Rich(Arc::new(Rich { program: program.clone(), tool: name.to_owned(), exports }))
        };
        if tool.origin.format != Format::Component {
            let one = select(&tool, &self.descriptors)?;
            let inner = one.as_ref().map_or(tool.name.as_str(), |one| &one.name).to_owned();
            tool.body = body(&inner, one.as_ref().map_or(exports, |one| one.exports(exports)));
            return Ok(vec![filled(tool, one.as_deref())]);
        }
        if self.descriptors.is_empty() {
            tool.body = body(&tool.name, exports);
            return Ok(vec![tool]);
        }
        let each = self.descriptors.iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            own.body = body(&one.name, one.exports(exports));
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// Returns the tools of a command with descriptors.
    fn command(self, tool: Tool) -> Result<Vec<Tool>, String> {
        if tool.origin.format != Format::Component {
            let one = select(&tool, &self.descriptors)?;
            return Ok(vec![filled(tool, one.as_deref())]);
        }
        let each = self.descriptors.iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// Returns the entry of an interpreter, which no call reaches.
    fn interpreter(self, tool: Tool, language: &Language) -> Tool {
        let reason = format!("an interpreter of {} programs, for `run_code` alone", language.language);
        Tool {
            description: Some(format!("{}, for programs of a model.", language.implementation)),
            body: Body::Interpreter(Arc::new(Interpreter::new(self.program, language))),
            requested: Capabilities { declared: true, ..Capabilities::default() },
            disabled: Some(Disabled { field: INTERPRETER, reason }),
            ..tool
        }
    }

    /// Removes and returns the descriptor of a tool.
    fn take_descriptor(&mut self, name: &str) -> Option<Arc<Descriptor>> {
        let at = self.descriptors.iter().position(|one| one.name == name)?;
        Some(self.descriptors.remove(at))
    }
}

/// Returns the function that an entry requires. The second word of a command may be an argument, the one of a Markdown file may
/// not.
fn required_function(tool: &Tool) -> Option<&str> {
    match &tool.body {
        Body::Command { argv, .. } if tool.origin.format == Format::Markdown => argv.get(1).map(String::as_str),
        _ => None,
    }
}

fn filled(tool: Tool, one: Option<&Descriptor>) -> Tool {
    match one {
        Some(one) => one.fill(tool),
        None => tool,
    }
}

fn problem(tool: &Tool, why: String) -> ScopedDiagnostic {
    ScopedDiagnostic { reason: Some(why.clone()), ..super::tool_diagnostic(tool, Severity::Error, &why, "/command/0") }
}

/// Selects the descriptor for an entry: the one that the second word of its command names, else the one of its own name, else
/// the only one.
fn select(tool: &Tool, described: &[Arc<Descriptor>]) -> Result<Option<Arc<Descriptor>>, String> {
    let named = match &tool.body {
        Body::Command { argv, .. } => argv.get(1).cloned(),
        _ => None,
    };
    let wanted = named.as_deref().unwrap_or(&tool.name);
    if let Some(one) = described.iter().find(|one| one.name == wanted) {
        return Ok(Some(one.clone()));
    }
    match (described.len(), named) {
        (0, _) => Ok(None),
        (1, None) => Ok(described.first().cloned()),
        (_, named) => {
            let names = listed(described.iter().map(|one| format!("`{}`", one.name)));
            let found = named.map_or_else(String::new, |named| format!(" and none is named {named:?}"));
            Err(format!("its component holds {names}{found}: name one as the second word of `command`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tool::tests::plain;

    use super::*;

    fn described(name: &str) -> Arc<Descriptor> {
        let mut report = Diagnostics::new(Path::new("x.wasm"));
        Arc::new(Descriptor::read(0, json!({"name": name}), true, &mut report).unwrap())
    }

    #[test]
    fn of_many_tools_of_a_component_the_first_are_named() {
        let many: Vec<_> = (0..256).map(|n| described(&format!("t{n}"))).collect();
        let why = |count| select(&plain("x"), &many[..count]).err().unwrap();
        assert!(why(10).contains("`t8`, `t9`: name one"), "{}", why(10));
        assert!(why(256).contains("`t8`, `t9`, and 246 more: name one"), "{}", why(256));
    }

    #[test]
    fn the_problems_of_a_program_are_reported_with_its_first_entry_alone() {
        let mut report = Diagnostics::new(Path::new("x.wasm"));
        report.warn("a");
        report.error("b");
        report.error("c");
        let contract = Contract::Known { kind: Kind::Command, described: Vec::new(), problems: report.problems };
        let program = Program { imports: None, contract, unlinked: None, uncallable: None };
        let messages = |is_reported| {
            let problems = tools_of(&program, &plain("x"), is_reported).err().unwrap();
            problems.into_iter().map(|noted| noted.problem.message).collect::<Vec<_>>()
        };
        assert_eq!((messages(false), messages(true)), (vec!["a".into(), "b".into(), "c".into()], vec!["b".to_owned()]));
    }
}
