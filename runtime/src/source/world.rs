//! What a component says of its tools: descriptors in its own bytes, read without running any of it. A component with the
//! contract of rich tools may hold several tools; a command holds one. Whatever else names the component, such as an entry
//! of a manifest, has the first word, and the descriptor fills in what that leaves open.

mod described;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::schema::typed as mapping;
use crate::tool::typed::{Function, Typed};
use crate::tool::{Body, Format, Rich, Says, Tool};

use super::imports::Known;
use super::report::Report;
use super::typed::{self, Exported, Names};
use super::{Noted, Problem, Severity, descriptor, program_bytes};

use described::Described;

/// How the names of the contract's interfaces begin and end: every version of the first major one.
const PACKAGE: &str = "toolcrib:tool/";
const VERSION: &str = "@1.";
/// The most exports that are no tools of which an error tells.
const MOST_TOLD: usize = 3;

/// What a tool of a component is, as far as its bytes tell.
pub(super) fn settle(mut tool: Tool, known: Option<Known>) -> (Vec<Tool>, Vec<Noted>) {
    let Some(Known { imports, exports, is_described }) = known else { return (vec![tool], Vec::new()) };
    tool.imports = Some(imports);
    let is_rich = says(&exports, "call");
    let is_typed = !is_rich && exports.iter().any(|name| !typed::is_contract(name));
    let Some(program) = tool.body.program().map(Path::to_path_buf) else { return (vec![tool], Vec::new()) };
    if !(is_rich || is_typed || is_described) {
        return (vec![tool], Vec::new());
    }
    let mut report = Report::new(&program);
    let bytes = report.value(program_bytes(&program).map_err(|error| format!("cannot be read: {error}")));
    let bytes = bytes.unwrap_or_default();
    let read = report.value(descriptor::sections(&bytes)).unwrap_or_default();
    let several = read.len() > 1;
    let described: Vec<Described> = read
        .into_iter()
        .enumerate()
        .filter_map(|(index, one)| Described::read(index, one, several, &mut report))
        .collect();
    if has_error(&report) {
        return (Vec::new(), report.problems);
    }
    let component = Component { program: program.clone(), described };
    let settled = match () {
        () if is_rich => component.rich(tool, Says::of(&exports)),
        () if is_typed => component.typed(tool, &bytes, exports.iter().any(|name| is_command(name)), &mut report),
        () => component.command(tool),
    };
    let tools = settled.unwrap_or_else(|problem| {
        report.problems.push(Noted { problem, together: false });
        Vec::new()
    });
    (tools, report.problems)
}

/// Whether a component exports this interface of our contract.
fn says(exports: &[String], interface: &str) -> bool {
    exports.iter().any(|name| {
        name.strip_prefix(PACKAGE)
            .and_then(|rest| rest.strip_prefix(interface))
            .is_some_and(|version| version.starts_with(VERSION))
    })
}

fn is_command(export: &str) -> bool {
    export.split('@').next() == Some("wasi:cli/run")
}

fn has_error(report: &Report) -> bool {
    report.problems.iter().any(|noted| noted.problem.severity == Severity::Error)
}

impl Says {
    fn of(exports: &[String]) -> Self {
        Self {
            validate: says(exports, "validate"),
            preview: says(exports, "preview"),
            prepare: says(exports, "prepare"),
            route: says(exports, "route"),
            present: says(exports, "present"),
        }
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

    /// The functions of a component that are tools, and the command that it may be besides.
    fn typed(mut self, tool: Tool, bytes: &[u8], is_command: bool, report: &mut Report) -> Result<Vec<Tool>, Problem> {
        let wrong = |message: String| problem(&tool, message);
        let Exported { functions, refused } = typed::read(bytes).map_err(wrong)?;
        let names = typed::names(&functions).map_err(wrong)?;
        if tool.origin.format == Format::Component {
            if !refused.is_empty() {
                let (count, told) = (refused.len(), listed(&refused));
                report.warn(&format!("{count} of its exports are no tools: {told}"));
            }
            let mut tools = Vec::new();
            if is_command {
                let one = self.take(&tool.name);
                tools.push(filled(tool.clone(), one));
            }
            for (function, Names { short, full }) in functions.into_iter().zip(names) {
                let mut own = Tool { name: short, ..tool.clone() };
                if full != own.name {
                    own.interface.identity.aliases.infer(vec![full]);
                }
                let one = self.take(&own.name);
                tools.push(self.function(filled(own, one), function));
            }
            if let Some(one) = self.described.first() {
                return Err(problem(
                    &tool,
                    format!("it describes the tool {:?}, and exports no function of that name", one.name),
                ));
            }
            return match tools.is_empty() {
                true => Err(problem(&tool, format!("none of its exports is a tool: {}", listed(&refused)))),
                false => Ok(tools),
            };
        }
        let word = match &tool.body {
            Body::Command { argv, .. } => argv.get(1).cloned(),
            _ => None,
        };
        let means = |word: &str, (function, names): (&Function, &Names)| {
            names.short == word || names.full == word || function.to_string() == word || function.name == word
        };
        let find = |word: &str| {
            let mut found = functions.iter().zip(&names).enumerate().filter(|(_, one)| means(word, *one));
            let first = found.next().map(|(index, _)| index);
            first.filter(|_| found.next().is_none())
        };
        let index = match &word {
            Some(word) => find(word),
            None if is_command => None,
            None => find(&tool.name).or((functions.len() == 1).then_some(0)),
        };
        let Some(index) = index else {
            if is_command {
                let one = self.take(&tool.name);
                return Ok(vec![filled(tool, one)]);
            }
            let word = word.as_deref();
            let asked = refused.iter().find(|(place, _)| word.is_some_and(|word| place.ends_with(word)));
            if let Some((place, why)) = asked {
                return Err(problem(&tool, format!("`{place}` cannot be a tool: {why}")));
            }
            let known: Vec<_> = names.iter().map(|names| format!("`{}`", names.short)).collect();
            let found = word.map(|word| format!(" and none is named {word:?}")).unwrap_or_default();
            let message = match known.is_empty() {
                true => format!("none of its component's exports is a tool: {}", listed(&refused)),
                false => {
                    format!("its component has {}{found}: name one as the second word of `command`", known.join(", "))
                }
            };
            return Err(problem(&tool, message));
        };
        let one = self.take(&names[index].short);
        let function = functions.into_iter().nth(index);
        let tool = filled(tool, one);
        Ok(function.map(|function| self.function(tool, function)).into_iter().collect())
    }

    /// What the component says of a tool by its name.
    fn take(&mut self, name: &str) -> Option<Described> {
        let at = self.described.iter().position(|one| one.name == name)?;
        Some(self.described.remove(at))
    }

    /// The tool that a function is. What its source leaves open, the types say.
    fn function(&self, mut tool: Tool, function: Function) -> Tool {
        tool.description = tool.description.or_else(|| function.docs.clone());
        tool.parameters = tool.parameters.or_else(|| Some(mapping::arguments(&function)));
        if let Some(output) = mapping::output(&function) {
            tool.interface.schemas.output_schema.infer(Some(output));
        }
        tool.body = Body::Typed(Arc::new(Typed { program: self.program.clone(), function }));
        tool
    }
}

fn filled(tool: Tool, one: Option<Described>) -> Tool {
    match one {
        Some(one) => one.fill(tool),
        None => tool,
    }
}

/// What cannot be a tool, and why, as far as one sentence holds it.
fn listed(refused: &[(String, String)]) -> String {
    let mut each: Vec<_> = refused.iter().take(MOST_TOLD).map(|(place, why)| format!("`{place}` ({why})")).collect();
    if refused.len() > MOST_TOLD {
        each.push(format!("and {} more", refused.len() - MOST_TOLD));
    }
    if each.is_empty() { "it exports no functions".to_owned() } else { each.join(", ") }
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
