//! What a component says of its tools: descriptors in its own bytes, read without running any of it. A component with the
//! contract of rich tools may hold several tools; a command holds one. Whatever else names the component, such as an entry
//! of a manifest, has the first word, and the descriptor fills in what that leaves open.

mod described;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::tool::{Body, Format, Rich, Says, Tool};

use super::imports::Known;
use super::report::Report;
use super::{MOST_PROGRAM_BYTES, Noted, Problem, Severity, descriptor};

use described::Described;

/// How the names of the contract's interfaces begin and end: every version of the first major one.
const PACKAGE: &str = "toolcrib:tool/";
const VERSION: &str = "@1.";
/// What a tool of a component is, as far as its bytes tell.
pub(super) fn settle(mut tool: Tool, known: Option<Known>) -> (Vec<Tool>, Vec<Noted>) {
    let Some(Known { imports, exports, is_described }) = known else { return (vec![tool], Vec::new()) };
    tool.imports = Some(imports);
    let says = |interface: &str| {
        exports.iter().any(|name| {
            name.strip_prefix(PACKAGE)
                .and_then(|rest| rest.strip_prefix(interface))
                .is_some_and(|version| version.starts_with(VERSION))
        })
    };
    let is_rich = says("call");
    let Some(program) = tool.body.program().map(Path::to_path_buf).filter(|_| is_rich || is_described) else {
        return (vec![tool], Vec::new());
    };
    let mut report = Report::new(&program);
    let read = read(&program).unwrap_or_else(|why| {
        report.error(&why);
        Vec::new()
    });
    let several = read.len() > 1;
    let described: Vec<Described> = read
        .into_iter()
        .enumerate()
        .filter_map(|(index, one)| Described::read(index, one, several, &mut report))
        .collect();
    if report.problems.iter().any(|noted| noted.problem.severity == Severity::Error) {
        return (Vec::new(), report.problems);
    }
    let says = Says {
        validate: says("validate"),
        preview: says("preview"),
        prepare: says("prepare"),
        route: says("route"),
        present: says("present"),
    };
    let body = |name: &str, says: Says| {
        let rich = Rich { program: program.clone(), tool: name.to_owned(), says };
        is_rich.then(|| Body::Rich(Arc::new(rich)))
    };
    let tools = if tool.origin.format == Format::Component {
        match described.is_empty() {
            true => {
                tool.body = body(&tool.name, says).unwrap_or(tool.body);
                vec![tool]
            }
            false => {
                let each = described.into_iter().map(|one| {
                    let mut own = tool.clone();
                    own.name = one.name.clone();
                    own.body = body(&one.name, one.says(says)).unwrap_or_else(|| own.body.clone());
                    one.fill(own)
                });
                each.collect()
            }
        }
    } else {
        match chosen(&tool, described) {
            Ok(one) => {
                let inner = one.as_ref().map_or(tool.name.as_str(), |one| &one.name).to_owned();
                let says = one.as_ref().map_or(says, |one| one.says(says));
                tool.body = body(&inner, says).unwrap_or(tool.body);
                vec![match one {
                    Some(one) => one.fill(tool),
                    None => tool,
                }]
            }
            Err(why) => {
                let message = format!("tool {:?}: {why}", tool.name);
                let path = tool.origin.path.to_path_buf();
                let problem = Problem { severity: Severity::Error, path, place: None, message };
                report.problems.push(Noted { problem, together: false });
                Vec::new()
            }
        }
    };
    (tools, report.problems)
}

/// Which of the tools of its component an entry means: the one that the second word of its command names, else the one of
/// its own name, else the only one.
fn chosen(tool: &Tool, mut described: Vec<Described>) -> Result<Option<Described>, String> {
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
            Err(format!("its component holds {}{found}: name one as the second word of `command`", names.join(", ")))
        }
    }
}

fn read(program: &Path) -> Result<Vec<Value>, String> {
    let mut bytes = Vec::new();
    let unreadable = |error: std::io::Error| format!("cannot be read: {}", error.kind());
    File::open(program)
        .and_then(|file| file.take(MOST_PROGRAM_BYTES as u64).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    descriptor::sections(&bytes)
}
