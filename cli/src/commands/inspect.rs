//! `toolcrib inspect`: shows the details of a tool with each fact's source, or the capabilities that a component could
//! request. Nothing is executed.

mod component;
mod sheet;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolcrib::source::{self, Severity};
use toolcrib::tool::typed::Function;
use toolcrib::tool::{Body, Builtin, FileRequest, Glob, Limits, Remote, Script, ScriptedHook};
use toolcrib::{Runtime, Tool};
use toolcrib_base::render::{self, Advice};
use toolcrib_packages::builtin;
use toolcrib_sources::options::{CODE_TOOLS, Sources};
use toolcrib_sources::staleness;
use toolcrib_sources::tool_facts::disabled;

use component::Component;

const EXAMPLES: &str = "\
Examples:
  toolcrib inspect fs_read_file --tools target/crib --allow-read=./docs
  toolcrib inspect ./greet.tool.json
  toolcrib inspect .harness/tools/count.md
  toolcrib inspect ./greet.wasm --json | jq .interface.safety
  toolcrib inspect ./other.wasm --json | jq -r '.component.asks[].capability'

For a component, or a core module for WASI preview 1, the imports are shown: they bound everything \
that it could request. Only its bytes are read; nothing is compiled or run.

A fact is `declared` by the tool's source, `inferred` from the imports of its program and from its \
permissions, or the safe `default`. An argument that ends in .json, .md, .wasm or .tar or contains a \
slash is a file or an oci:// reference, which is loaded alone; anything else is the name of a tool from --tools.";

/// Show a tool's details, where each fact comes from, and what a component could request.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of a tool, or a component, an Agent Tool record or a Markdown file
    #[arg(value_name = "NAME or FILE")]
    tool: String,
    /// Also show empty defaults
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

/// A tool with its runtime and program.
struct Details<'a> {
    runtime: &'a Runtime,
    tool: &'a Tool,
    program: Option<Component>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut sources = args.sources;
    let mut file = is_file(&args.tool).then(|| PathBuf::from(&args.tool));
    if let Some(named) = &file {
        sources.tools = vec![named.clone()];
    }
    sources.fetch().await?;
    if let Some(file) = &mut file {
        file.clone_from(&sources.tools[0]);
        require(file)?;
        if is_program(file)
            && let Some(component) = unless_single_tool(file)?
        {
            return show(args.json, || Ok(json!({ "component": component.record()? })), || component.sheet());
        }
    }
    if let (None, true, Err(error)) = (&file, sources.tools.is_empty(), sources.paths()) {
        let name = &args.tool;
        return Err(match as_file(name) {
            Some(hint) => Advice::new(format!("no tool is named `{name}`: no tools found"), hint).into(),
            None => error.context(format!("neither a tool nor a file is named `{name}`")),
        });
    }
    sources = sources.offering_code(CODE_TOOLS.contains(&args.tool.as_str()));
    let runtime = sources.runtime(Limits::default().deadline, [])?;
    let tool = match &file {
        Some(file) => single_tool(&runtime, file)?,
        None => match runtime.tool(&args.tool) {
            Some(tool) => tool,
            None => return Err(unknown_tool(&runtime, &args.tool).await),
        },
    };
    let mut program = match tool.body.program().map(Component::read).transpose() {
        // The program of an unusable tool may be missing; the reason is shown instead.
        Err(_) if tool.unusable.is_some() => None,
        program => program?,
    };
    if let Some(component) = &mut program {
        let same = runtime.tools().filter(|other| other.body.program() == tool.body.program());
        component.tools = same.map(|tool| tool.name.clone()).collect();
    }
    staleness::warn([tool]);
    let details = Details { runtime: &runtime, tool, program };
    show(args.json, || record(&details), || sheet::of(&details, args.all))
}

fn show(
    json: bool,
    record: impl FnOnce() -> anyhow::Result<Value>,
    sheet: impl FnOnce() -> String,
) -> anyhow::Result<ExitCode> {
    if json {
        render::print_json(&serde_json::to_string(&record()?)?)?;
    } else {
        render::print_screen(&sheet())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a file does not exist.
fn require(file: &Path) -> anyhow::Result<()> {
    if file.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let hint = "check the path, or pass the name of a tool; `toolcrib list` lists the tools";
    Err(Advice::new(format!("`{}` does not exist", file.display()), hint).into())
}

/// Returns the hint for a name without a `/` that an existing file has.
fn as_file(name: &str) -> Option<String> {
    Path::new(name).is_file().then(|| format!("to inspect the file of this name, use `toolcrib inspect ./{name}`"))
}

/// Error for a name that no tool has; it may be meant as a file.
async fn unknown_tool(runtime: &Runtime, name: &str) -> anyhow::Error {
    let error = runtime.prepare(name).await.err();
    let neither = "no file has this name either; `toolcrib list` lists the tools; name a file by its \
                   path, such as `./tool.wasm`";
    let is_near = |error: &&toolcrib::Error| matches!(error, toolcrib::Error::UnknownTool { nearest: Some(_), .. });
    let nearest = error.as_ref().filter(is_near).and_then(toolcrib::Error::hint);
    let hint = as_file(name).or(nearest).unwrap_or_else(|| neither.to_owned());
    let message = error.map_or_else(|| format!("unknown tool: {name}"), |error| error.to_string());
    Advice::new(message, hint).into()
}

/// `true` if a file is inspected as a program instead of loaded as a text source.
fn is_program(file: &Path) -> bool {
    let is_text = file
        .extension()
        .is_some_and(|extension| ["json", "md"].iter().any(|text| extension.eq_ignore_ascii_case(text)));
    !is_text && !file.is_dir() && !source::is_bundle(file)
}

/// Returns the program of a file unless the file defines exactly one tool.
fn unless_single_tool(file: &Path) -> anyhow::Result<Option<Component>> {
    let mut component = Component::read(file)?;
    component.problem = if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("wasm")) {
        let mut problems = source::check(file).into_iter();
        problems.find(|problem| problem.severity == Severity::Error).map(|problem| problem.to_string())
    } else {
        Some("components are loaded only from files with names that end in `.wasm`".to_owned())
    };
    if component.problem.is_none() {
        let tools = source::load(file)?.tools;
        // The one tool of a file is shown by another path.
        if tools.len() > 1 {
            staleness::warn(&tools);
        }
        component.tools = tools.into_iter().map(|tool| tool.name).collect();
    }
    match component.tools.as_slice() {
        [_] => return Ok(None),
        [] => {}
        [name, ..] => {
            let file = file.display();
            render::hint(&format!("for details of one tool, run `toolcrib inspect {name} --tools {file}`"));
        }
    }
    Ok(Some(component))
}

/// `true` if an argument is a file rather than a tool name, whatever the working directory.
fn is_file(argument: &str) -> bool {
    [".json", ".md", ".wasm", ".tar"].iter().any(|ending| argument.ends_with(ending))
        || argument.contains(std::path::is_separator)
}

/// Returns the only tool of a file.
fn single_tool<'a>(runtime: &'a Runtime, file: &Path) -> anyhow::Result<&'a Tool> {
    let mut tools = runtime.tools();
    match (tools.next(), tools.next()) {
        (Some(tool), None) => Ok(tool),
        (None, _) if runtime.hooks().next().is_some() => {
            let message = format!("`{}` defines a hook, not a tool; hooks cannot be inspected yet", file.display());
            Err(Advice::new(message, "`toolcrib list` lists hooks with their scopes").into())
        }
        (first, _) => {
            let count = runtime.tools().count();
            let name = first.map_or("NAME", |tool| &tool.name);
            let hint = format!("choose one, such as `toolcrib inspect {name} --tools {}`", file.display());
            Err(Advice::new(format!("`{}` defines {count} tools, but only one can be inspected", file.display()), hint)
                .into())
        }
    }
}

fn record(details: &Details<'_>) -> anyhow::Result<Value> {
    let Details { runtime, tool, program } = details;
    let mut interface = Map::new();
    for row in tool.rows() {
        interface.entry(row.partition).or_insert_with(|| json!({}))[row.field] =
            json!({ "value": row.value, "basis": row.basis });
    }
    let grant = runtime.grant(&tool.name);
    let runs_programs = matches!(tool.body, Body::Builtin(Builtin::RunCode));
    let interpreters = runtime.interpreters().filter(|_| runs_programs);
    let interpreters: Map<_, _> =
        interpreters.map(|(language, file)| (language.to_owned(), json!(file.map(Path::to_string_lossy)))).collect();
    Ok(json!({
        "name": tool.name,
        "description": tool.description,
        "callable": disabled(runtime, tool).is_none(),
        "reason": disabled(runtime, tool),
        "source": {
            "format": tool.origin.format,
            "path": tool.origin.path.to_string_lossy(),
            "index": tool.origin.index,
            "builtin": builtin::holds(&tool.origin.path),
            "unknown": tool.origin.unknown,
        },
        "program": program.as_ref().map(|program| json!({
            "path": program.path.to_string_lossy(),
            "digest": program.about.digest,
            "bytes": program.about.bytes,
        })),
        "component": program.as_ref().map(Component::record).transpose()?,
        "interpreters": runs_programs.then_some(interpreters),
        "function": function(tool).map(ToString::to_string),
        "script": script(tool).map(|script| json!({
            "digest": script.digest,
            "bytes": script.source.len(),
            "place": script.place,
            "background": script.background,
        })),
        "server": remote(tool).map(|remote| json!({
            "url": remote.server.address.as_str(),
            "revision": remote.server.revision,
            "tool": remote.name,
            "digest": remote.digest,
        })),
        "commandLine": command_line(tool),
        "hooks": hooks(runtime, tool).map(|hook| json!({
            "name": hook.tool.name,
            "event": hook.event.to_string(),
            "priority": hook.priority,
            "source": hook.tool.origin.path.to_string_lossy(),
            "scope": hook.scope,
        })).collect::<Vec<_>>(),
        "requested": requested(tool),
        "granted": grant.map(|grant| grant.granted()),
        "denied": grant.map(|grant| grant.denied().iter().map(|denial| &denial.capability).collect::<Vec<_>>()),
        "limits": runtime.limits(&tool.name).map(limits),
        "imports": tool.imports.as_deref(),
        "interface": interface,
    }))
}

/// Returns the fixed arguments of a command, and the command line that calls fill.
fn command_line(tool: &Tool) -> Option<Value> {
    let Body::Command { argv, command_line, .. } = &tool.body else { return None };
    let fixed = argv.get(1..).unwrap_or_default();
    let mut object = serde_json::to_value(command_line).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
    if !fixed.is_empty() {
        object["fixed"] = json!(fixed);
    }
    Some(object).filter(|object| object != &json!({}))
}

/// Returns the component function of a typed tool.
fn function(tool: &Tool) -> Option<&Function> {
    match &tool.body {
        Body::Typed(typed) => Some(&typed.function),
        _ => None,
    }
}

/// Returns the script of a scripted tool.
fn script(tool: &Tool) -> Option<&Script> {
    match &tool.body {
        Body::Script(script) => Some(script),
        _ => None,
    }
}

/// Returns the remote tool.
fn remote(tool: &Tool) -> Option<&Remote> {
    match &tool.body {
        Body::Remote(remote) => Some(remote),
        _ => None,
    }
}

/// Returns the hooks that may run for calls of a tool, in order. Their argument conditions are not evaluated.
fn hooks<'a>(runtime: &'a Runtime, tool: &'a Tool) -> impl Iterator<Item = &'a ScriptedHook> {
    runtime.hooks().filter(|hook| hook.handles(tool))
}

/// Returns the requested capabilities; `null` if the source states none and the flags decide.
fn requested(tool: &Tool) -> Value {
    let asked = &tool.requested;
    let files = match &asked.files {
        FileRequest::None if asked.declared => json!({}),
        FileRequest::None => Value::Null,
        FileRequest::Workspace(access) => json!(access),
        FileRequest::Folders(folders) => {
            let each = folders.iter().map(|it| json!({ "path": it.path.to_string_lossy(), "access": it.access }));
            each.collect()
        }
    };
    let mut requested = json!({ "stated": asked.declared, "files": files, "env": asked.env });
    // Only scripts can request these.
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
