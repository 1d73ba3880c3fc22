//! `toolcrib inspect`: all that is known of one tool and why it holds, and what any component could ever ask for, without
//! running it.

mod component;
mod sheet;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolcrib::Availability;
use toolcrib::source::{self, Severity};
use toolcrib::tool::typed::Function;
use toolcrib::tool::{Body, FileRequest, Glob, HookPoint, Limits, Script, ScriptedHook};
use toolcrib::{Runtime, Tool};

use crate::options::Sources;
use crate::render::{self, Advice};

use component::Component;

const EXAMPLES: &str = "\
Examples:
  toolcrib inspect fs_read_file --tools target/crib --allow-read=./docs
  toolcrib inspect ./greet.tool.json
  toolcrib inspect .harness/tools/count.md
  toolcrib inspect ./greet.wasm --json | jq .interface.safety
  toolcrib inspect ./stranger.wasm --json | jq -r '.component.asks[].capability'

Of a component, or a core module for WASI preview 1, its imports are shown: they are all that it could
ever ask for. Its bytes are read; nothing of it is compiled or run.

A fact is `declared` by the tool's source, `inferred` from its program's imports and from what it is
granted, or the safe `default`. What ends in .json, .md or .wasm or has a slash in it is a file, which
is loaded alone; anything else is the name of a tool among --tools.";

/// Show what is known of a tool and why, and what a component could ask for.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of a tool, or a component, record or Markdown file
    #[arg(value_name = "NAME or FILE")]
    tool: String,
    /// Show the defaults that say nothing too
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

/// What is known of a tool beyond itself.
struct Known<'a> {
    runtime: &'a Runtime,
    tool: &'a Tool,
    program: Option<Component>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut sources = args.sources;
    let file = is_file(&args.tool).then(|| PathBuf::from(&args.tool));
    if let Some(file) = &file {
        sources.tools = vec![file.clone()];
        if is_program(file)
            && let Some(component) = no_tool_of_its_own(file)?
        {
            return show(args.json, || Ok(json!({ "component": component.record()? })), || component.sheet());
        }
    }
    let runtime = sources.runtime(Limits::default().deadline, [])?;
    let tool = match &file {
        Some(file) => the_one(&runtime, file)?,
        None => {
            if runtime.tool(&args.tool).is_none() {
                // There is nothing to prepare: the library says which name is nearest.
                runtime.prepare(&args.tool).await?;
            }
            runtime.tool(&args.tool).ok_or_else(|| anyhow::anyhow!("unknown tool: {}", args.tool))?
        }
    };
    let mut program = match tool.body.program().map(Component::read).transpose() {
        // The program of a tool that is unusable may be missing: the reason is shown in its place.
        Err(_) if tool.unusable.is_some() => None,
        program => program?,
    };
    if let Some(component) = &mut program {
        let same = runtime.tools().filter(|other| other.body.program() == tool.body.program());
        component.tools = same.map(|tool| tool.name.clone()).collect();
    }
    let known = Known { runtime: &runtime, tool, program };
    show(args.json, || record(&known), || sheet::of(&known, args.all))
}

fn show(
    json: bool,
    record: impl FnOnce() -> anyhow::Result<Value>,
    sheet: impl FnOnce() -> String,
) -> anyhow::Result<ExitCode> {
    if json {
        render::print_json(&serde_json::to_string(&record()?)?)?;
    } else {
        render::print(&sheet())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a file is inspected for its bytes and not read as a text with tools.
fn is_program(file: &Path) -> bool {
    let is_text = file
        .extension()
        .is_some_and(|extension| ["json", "md"].iter().any(|text| extension.eq_ignore_ascii_case(text)));
    !is_text && !file.is_dir()
}

/// The program of a file that is not one tool: it is several, or none.
fn no_tool_of_its_own(file: &Path) -> anyhow::Result<Option<Component>> {
    let mut component = Component::read(file)?;
    component.problem = if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("wasm")) {
        let mut problems = source::check(file).into_iter();
        problems.find(|problem| problem.severity == Severity::Error).map(|problem| problem.to_string())
    } else {
        Some("a component is loaded from a file whose name ends in `.wasm`".to_owned())
    };
    if component.problem.is_none() {
        component.tools = source::load(file)?.tools.into_iter().map(|tool| tool.name).collect();
    }
    match component.tools.as_slice() {
        [_] => return Ok(None),
        [] => {}
        [name, ..] => {
            let file = file.display();
            render::hint(&format!("`toolcrib inspect {name} --tools {file}` shows more of one of its tools"));
        }
    }
    Ok(Some(component))
}

/// Whether an argument means a file and not a name: the same wherever the caller stands.
fn is_file(argument: &str) -> bool {
    [".json", ".md", ".wasm"].iter().any(|ending| argument.ends_with(ending))
        || argument.contains(std::path::is_separator)
}

/// The one tool of a file.
fn the_one<'a>(runtime: &'a Runtime, file: &Path) -> anyhow::Result<&'a Tool> {
    let mut tools = runtime.tools();
    match (tools.next(), tools.next()) {
        (Some(tool), None) => Ok(tool),
        (first, _) => {
            let count = runtime.tools().count();
            let name = first.map_or("NAME", |tool| &tool.name);
            let hint = format!("name one of them, such as `toolcrib inspect {name} --tools {}`", file.display());
            Err(Advice::new(format!("{}: {count} tools, and one is inspected", file.display()), hint).into())
        }
    }
}

fn record(known: &Known<'_>) -> anyhow::Result<Value> {
    let Known { runtime, tool, program } = known;
    let mut interface = Map::new();
    for row in tool.rows() {
        interface.entry(row.partition).or_insert_with(|| json!({}))[row.field] =
            json!({ "value": row.value, "basis": row.basis });
    }
    let grant = runtime.grant(&tool.name);
    Ok(json!({
        "name": tool.name,
        "description": tool.description,
        "callable": closed(runtime, tool).is_none(),
        "reason": closed(runtime, tool),
        "source": {
            "format": tool.origin.format,
            "path": tool.origin.path.to_string_lossy(),
            "index": tool.origin.index,
            "unknown": tool.origin.unknown,
        },
        "program": program.as_ref().map(|program| json!({
            "path": program.path.to_string_lossy(),
            "digest": program.about.digest,
            "bytes": program.about.bytes,
        })),
        "component": program.as_ref().map(Component::record).transpose()?,
        "function": function(tool).map(ToString::to_string),
        "script": script(tool).map(|script| json!({
            "digest": script.digest,
            "bytes": script.source.len(),
            "place": script.place,
            "background": script.background,
        })),
        "hooks": hooks(runtime, tool).map(|hook| json!({
            "name": hook.tool.name,
            "event": hook.event.to_string(),
            "priority": hook.priority,
        })).collect::<Vec<_>>(),
        "requested": requested(tool),
        "granted": grant.map(|grant| grant.granted()),
        "denied": grant.map(|grant| grant.denied().iter().map(|denial| &denial.capability).collect::<Vec<_>>()),
        "limits": runtime.limits(&tool.name).map(limits),
        "imports": tool.imports.as_deref(),
        "interface": interface,
    }))
}

/// The function of a component that a tool is.
fn function(tool: &Tool) -> Option<&Function> {
    match &tool.body {
        Body::Typed(typed) => Some(&typed.function),
        _ => None,
    }
}

/// The script of a tool that is one.
fn script(tool: &Tool) -> Option<&Script> {
    match &tool.body {
        Body::Script(script) => Some(script),
        _ => None,
    }
}

/// The hooks that are asked about calls of a tool, in order; what else each of them waits for shows in a call alone.
fn hooks<'a>(runtime: &'a Runtime, tool: &'a Tool) -> impl Iterator<Item = &'a ScriptedHook> {
    let hears = |hook: &&ScriptedHook| {
        let tools = &hook.when.tools;
        matches!(hook.event, HookPoint::ToolPre | HookPoint::ToolPost)
            && (tools.is_empty() || tools.iter().any(|glob| glob.is_match(&tool.name)))
    };
    runtime.hooks().filter(hears)
}

/// Why a tool cannot be called, where it cannot.
fn closed<'a>(runtime: &'a Runtime, tool: &Tool) -> Option<&'a str> {
    match runtime.availability(&tool.name) {
        Some(Availability::Disabled { why, .. } | Availability::Unusable { why }) => Some(why),
        _ => None,
    }
}

/// What a tool asks for; `null` where its source says nothing and the flags decide.
fn requested(tool: &Tool) -> Value {
    let asked = &tool.requested;
    let files = match &asked.files {
        FileRequest::None if asked.stated => json!({}),
        FileRequest::None => Value::Null,
        FileRequest::Workspace(access) => json!(access),
        FileRequest::Folders(folders) => {
            let each = folders.iter().map(|it| json!({ "path": it.path.to_string_lossy(), "access": it.access }));
            each.collect()
        }
    };
    let mut requested = json!({ "stated": asked.stated, "files": files, "env": asked.env });
    // Nothing but a script has a way to ask for these.
    if let Body::Script(_) = tool.body {
        requested["exec"] = asked.exec.iter().map(Glob::as_str).collect();
        requested["delegate"] = json!(asked.delegate);
        requested["meta"] = json!(asked.meta);
    }
    requested
}

fn limits(limits: &Limits) -> Value {
    json!({
        "deadlineMs": limits.deadline.as_millis(),
        "memoryBytes": limits.memory,
        "outputBytes": limits.stdout,
        "errorBytes": limits.stderr,
        "handles": limits.handles,
        "diskBytes": limits.disk_bytes,
        "diskEntries": limits.disk_entries,
        "hostCallBytes": limits.host_call,
        "fuel": limits.fuel,
    })
}
