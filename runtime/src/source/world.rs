//! What a component says of its tools: descriptors in its own bytes, read without running any of it. A component with the
//! contract of rich tools may hold several tools; a command holds one. Whatever else names the component, such as an entry
//! of a manifest, has the first word, and the descriptor fills in what that leaves open.

mod described;
mod functions;
mod program;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tool::{Body, Format, Rich, Says, Tool};

use super::report::Report;
use super::{Noted, Problem, Severity};

use described::Described;
use program::{Contract, Kind, Program};

/// The programs of one source: each is read once, however many entries name it.
#[derive(Default)]
pub(super) struct Programs(HashMap<PathBuf, Option<Program>>);

impl Programs {
    /// What the tools of an entry are, as far as the bytes of its program tell.
    pub(super) fn settle(&mut self, mut tool: Tool) -> (Vec<Tool>, Vec<Noted>) {
        let Some(path) = tool.body.program().map(Path::to_path_buf) else { return (vec![tool], Vec::new()) };
        let program = self.0.entry(path.clone()).or_insert_with(|| Program::read(&path));
        let Some(program) = program else { return (vec![tool], Vec::new()) };
        tool.imports = Some(program.imports.clone());
        let mut report = Report::new(&path);
        let is_of_functions = matches!(&program.contract, Contract::Known { kind: Kind::Functions(_), .. });
        if let Some(function) = demanded(&tool).filter(|_| !is_of_functions) {
            let why = format!("its component exports no functions, and `function` names {function:?}");
            report.problems.push(Noted { problem: problem(&tool, why), together: false });
            return (Vec::new(), report.problems);
        }
        let Contract::Known { kind, descriptors } = &program.contract else { return (vec![tool], Vec::new()) };
        let Some(descriptors) = report.value(descriptors.clone()) else { return (Vec::new(), report.problems) };
        let several = descriptors.len() > 1;
        let described: Vec<Described> = descriptors
            .into_iter()
            .enumerate()
            .filter_map(|(index, one)| Described::read(index, one, several, &mut report))
            .collect();
        if report.problems.iter().any(|noted| noted.problem.severity == Severity::Error) {
            return (Vec::new(), report.problems);
        }
        report.enter(String::new());
        let component = Component { program: path, described };
        let settled = match kind {
            Kind::Rich(says) => component.rich(tool, *says),
            Kind::Functions(Ok(functions)) => component.functions(tool, functions, &mut report),
            Kind::Functions(Err(why)) => Err(problem(&tool, why.clone())),
            Kind::Command => component.command(tool),
        };
        let tools = settled.unwrap_or_else(|problem| {
            report.problems.push(Noted { problem, together: false });
            Vec::new()
        });
        (tools, report.problems)
    }
}

/// A component, with what it says of its tools.
struct Component {
    program: PathBuf,
    described: Vec<Described>,
}

impl Component {
    /// The tools of a component with the contract of rich tools.
    fn rich(self, mut tool: Tool, says: Says) -> Result<Vec<Tool>, Problem> {
        let program = self.program.clone();
        let body = |name: &str, says: Says| {
            Body::Rich(Arc::new(Rich { program: program.clone(), tool: name.to_owned(), says }))
        };
        if tool.origin.format != Format::Component {
            let one = chosen(&tool, self.described)?;
            let inner = one.as_ref().map_or(tool.name.as_str(), |one| &one.name).to_owned();
            tool.body = body(&inner, one.as_ref().map_or(says, |one| one.says(says)));
            return Ok(vec![filled(tool, one)]);
        }
        if self.described.is_empty() {
            tool.body = body(&tool.name, says);
            return Ok(vec![tool]);
        }
        let each = self.described.into_iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            own.body = body(&one.name, one.says(says));
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// A command that says of itself what it is.
    fn command(self, tool: Tool) -> Result<Vec<Tool>, Problem> {
        if tool.origin.format != Format::Component {
            let one = chosen(&tool, self.described)?;
            return Ok(vec![filled(tool, one)]);
        }
        let each = self.described.into_iter().map(|one| {
            let mut own = tool.clone();
            own.name = one.name.clone();
            one.fill(own)
        });
        Ok(each.collect())
    }

    /// What the component says of a tool by its name.
    fn take(&mut self, name: &str) -> Option<Described> {
        let at = self.described.iter().position(|one| one.name == name)?;
        Some(self.described.remove(at))
    }
}

/// The function that an entry demands. The second word of a command may be an argument; what a Markdown file names is none.
fn demanded(tool: &Tool) -> Option<&str> {
    match &tool.body {
        Body::Command { argv, .. } if tool.origin.format == Format::Artifact => argv.get(1).map(String::as_str),
        _ => None,
    }
}

fn filled(tool: Tool, one: Option<Described>) -> Tool {
    match one {
        Some(one) => one.fill(tool),
        None => tool,
    }
}

fn problem(tool: &Tool, why: String) -> Problem {
    let message = format!("tool {:?}: {why}", tool.name);
    Problem { severity: Severity::Error, path: tool.origin.path.to_path_buf(), place: None, message }
}

/// Which of the tools of its component an entry means: the one that the second word of its command names, else the one of
/// its own name, else the only one.
fn chosen(tool: &Tool, mut described: Vec<Described>) -> Result<Option<Described>, Problem> {
    let named = match &tool.body {
        Body::Command { argv, .. } => argv.get(1).cloned(),
        _ => None,
    };
    let wanted = named.as_deref().unwrap_or(&tool.name);
    if let Some(at) = described.iter().position(|one| one.name == wanted) {
        return Ok(Some(described.swap_remove(at)));
    }
    match (described.len(), named) {
        (0, _) => Ok(None),
        (1, None) => Ok(described.pop()),
        (_, named) => {
            let names: Vec<_> = described.iter().map(|one| format!("`{}`", one.name)).collect();
            let found = named.map_or_else(String::new, |named| format!(" and none is named {named:?}"));
            let why =
                format!("its component holds {}{found}: name one as the second word of `command`", names.join(", "));
            Err(problem(tool, why))
        }
    }
}
