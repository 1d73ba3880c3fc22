//! What a component says of its tools: descriptors in its own bytes, read without running any of it. A component with the
//! contract of rich tools may hold several tools; a command holds one. Whatever else names the component, such as an entry
//! of a manifest, has the first word, and the descriptor fills in what that leaves open.

mod described;
mod functions;
mod program;
mod unfit;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::tool::{Body, Format, Rich, Says, Tool};

use super::diagnostics::{Diagnostics, ScopedDiagnostic, confine};
use super::suggestion::listed;
use super::{Diagnostic, Severity};

use described::Described;
use program::{Contract, Kind, Program, Unfit};

/// The most tools of a component that a message names.
const MAX_NAMES: usize = 10;

/// The programs of one source: each is read once, however many entries name it.
#[derive(Default)]
pub(super) struct Programs(HashMap<PathBuf, Known>);

/// A program that was read, and whether its problems were told with the first entry that names it.
struct Known {
    program: Result<Arc<Program>, Unfit>,
    told: bool,
}

impl Programs {
    /// What the tools of an entry are, as far as the bytes of its program tell. An entry with an error stays as a tool that is
    /// unusable.
    pub(super) fn settle(&mut self, mut tool: Tool) -> (Vec<Tool>, Vec<ScopedDiagnostic>) {
        let Some(path) = tool.body.program().filter(|_| tool.unusable.is_none()).map(Path::to_path_buf) else {
            return (vec![tool], Vec::new());
        };
        let known = self
            .0
            .entry(path)
            .or_insert_with_key(|path| Known { program: Program::read(path).map(Arc::new), told: false });
        let told = std::mem::replace(&mut known.told, true);
        let settled = match &known.program {
            Ok(program) => {
                tool.imports.clone_from(&program.imports);
                settled(program, &tool, told)
            }
            Err(unfit) => Err(vec![unfit.of(&tool)]),
        };
        settled.unwrap_or_else(|mut problems| {
            let unusable = confine(&mut problems).map(Arc::new);
            (vec![Tool { unusable, ..tool }], problems)
        })
    }
}

/// The tools of an entry, or what is wrong with it. What a program says amiss of itself is `told` once.
fn settled(
    program: &Program,
    tool: &Tool,
    told: bool,
) -> Result<(Vec<Tool>, Vec<ScopedDiagnostic>), Vec<ScopedDiagnostic>> {
    if let Some(why) = &program.unlinked {
        return Err(vec![Unfit::Unrunnable(why.clone()).of(tool)]);
    }
    let path = tool.body.program().unwrap_or(Path::new("")).to_path_buf();
    let is_of_functions = matches!(&program.contract, Contract::Known { kind: Kind::Functions(_), .. });
    if let Some(function) = demanded(tool).filter(|_| !is_of_functions) {
        let why = format!("its component exports no functions, and `function` names {function:?}");
        return Err(vec![problem(tool, why)]);
    }
    let mut report = Diagnostics::new(&path);
    let mut tools = match &program.contract {
        Contract::Unknown => vec![tool.clone()],
        Contract::Known { kind, described, problems } => {
            if let Some(first) = problems.iter().find(|noted| noted.problem.severity == Severity::Error) {
                return Err(if told { vec![first.clone()] } else { problems.clone() });
            }
            if !told {
                report.problems.clone_from(problems);
            }
            let component = Component { program: path, described: described.clone() };
            let tools = match kind {
                Kind::Rich(says) => component.rich(tool.clone(), *says),
                Kind::Functions(Ok(functions)) => component.functions(tool.clone(), functions, &mut report),
                Kind::Functions(Err(why)) => Err(why.clone()),
                Kind::Command => component.command(tool.clone()),
            };
            tools.map_err(|why| vec![problem(tool, why)])?
        }
    };
    if let Some(why) = &program.uncallable {
        for tool in &mut tools {
            let mut problems = [Unfit::Unrunnable(why.clone()).of(tool)];
            tool.unusable = confine(&mut problems).map(Arc::new);
            report.problems.extend(problems);
        }
    }
    Ok((tools, report.problems))
}

impl Unfit {
    /// The problem of a tool that has such a program.
    fn of(&self, tool: &Tool) -> ScopedDiagnostic {
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

/// A component, with what it says of its tools.
struct Component {
    program: PathBuf,
    described: Vec<Arc<Described>>,
}

impl Component {
    /// The tools of a component with the contract of rich tools.
    fn rich(self, mut tool: Tool, says: Says) -> Result<Vec<Tool>, String> {
        let program = self.program.clone();
        let body = |name: &str, says: Says| {
            Body::Rich(Arc::new(Rich { program: program.clone(), tool: name.to_owned(), says }))
        };
        if tool.origin.format != Format::Component {
            let one = chosen(&tool, &self.described)?;
            let inner = one.as_ref().map_or(tool.name.as_str(), |one| &one.name).to_owned();
            tool.body = body(&inner, one.as_ref().map_or(says, |one| one.says(says)));
            return Ok(vec![filled(tool, one.as_deref())]);
        }
        if self.described.is_empty() {
            tool.body = body(&tool.name, says);
            return Ok(vec![tool]);
        }
        let each = self.described.iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            own.body = body(&one.name, one.says(says));
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// A command that says of itself what it is.
    fn command(self, tool: Tool) -> Result<Vec<Tool>, String> {
        if tool.origin.format != Format::Component {
            let one = chosen(&tool, &self.described)?;
            return Ok(vec![filled(tool, one.as_deref())]);
        }
        let each = self.described.iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// What the component says of a tool by its name.
    fn take(&mut self, name: &str) -> Option<Arc<Described>> {
        let at = self.described.iter().position(|one| one.name == name)?;
        Some(self.described.remove(at))
    }
}

/// The function that an entry demands. The second word of a command may be an argument; what a Markdown file names is none.
fn demanded(tool: &Tool) -> Option<&str> {
    match &tool.body {
        Body::Command { argv, .. } if tool.origin.format == Format::Markdown => argv.get(1).map(String::as_str),
        _ => None,
    }
}

fn filled(tool: Tool, one: Option<&Described>) -> Tool {
    match one {
        Some(one) => one.fill(tool),
        None => tool,
    }
}

fn problem(tool: &Tool, why: String) -> ScopedDiagnostic {
    ScopedDiagnostic { reason: Some(why.clone()), ..super::tool_diagnostic(tool, Severity::Error, &why, "/command/0") }
}

/// Which of the tools of its component an entry means: the one that the second word of its command names, else the one of
/// its own name, else the only one.
fn chosen(tool: &Tool, described: &[Arc<Described>]) -> Result<Option<Arc<Described>>, String> {
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
            let names = listed(described.iter().map(|one| format!("`{}`", one.name)), MAX_NAMES);
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

    fn described(name: &str) -> Arc<Described> {
        let mut report = Diagnostics::new(Path::new("x.wasm"));
        Arc::new(Described::read(0, json!({"name": name}), true, &mut report).unwrap())
    }

    #[test]
    fn of_many_tools_of_a_component_the_first_are_named() {
        let many: Vec<_> = (0..256).map(|n| described(&format!("t{n}"))).collect();
        let why = |count| chosen(&plain("x"), &many[..count]).err().unwrap();
        assert!(why(10).contains("`t8`, `t9`: name one"), "{}", why(10));
        assert!(why(256).contains("`t8`, `t9`, and 246 more: name one"), "{}", why(256));
    }

    #[test]
    fn what_is_wrong_in_a_program_is_told_whole_with_its_first_entry_alone() {
        let mut report = Diagnostics::new(Path::new("x.wasm"));
        report.warn("a");
        report.error("b");
        report.error("c");
        let contract = Contract::Known { kind: Kind::Command, described: Vec::new(), problems: report.problems };
        let program = Program { imports: None, contract, unlinked: None, uncallable: None };
        let told = |told| {
            let problems = settled(&program, &plain("x"), told).err().unwrap();
            problems.into_iter().map(|noted| noted.problem.message).collect::<Vec<_>>()
        };
        assert_eq!((told(false), told(true)), (vec!["a".into(), "b".into(), "c".into()], vec!["b".to_owned()]));
    }
}
