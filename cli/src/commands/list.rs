//! `toolcrib list`: lists tools and their permissions. Nothing is executed.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::tool::{Glob, HookPoint, HookScope, Limits, ScriptedHook};
use toolcrib::{Runtime, Tool};
use toolcrib_base::render;
use toolcrib_mcp::names_for_clients;
use toolcrib_packages::builtin;
use toolcrib_sources::options::{Sources, code_tools};
use toolcrib_sources::schemas::Names;
use toolcrib_sources::tool_facts::{disabled, first_sentence, granted, needs, permissions, source};

const EXAMPLES: &str = "\
Examples:
  toolcrib list --tools ./tools.json --allow-read=./docs
  toolcrib list --tools builtin
  toolcrib list --all --tools .
  toolcrib list --json | jq -r '.[].name'";
const HEADINGS: [&str; 5] = ["NAME", "NEEDS", "GRANTED", "SOURCE", "DESCRIPTION"];
const DISABLED_HEADINGS: [&str; 4] = ["DISABLED", "REASON", "SOURCE", "DESCRIPTION"];
const RENAMED_HEADINGS: [&str; 2] = ["NAME", "NAME FOR MCP CLIENTS"];
const HOOK_HEADINGS: [&str; 5] = ["HOOK", "EVENT", "MATCHES", "SCOPE", "SOURCE"];
const ALL_HOOK_HEADINGS: [&str; 8] =
    ["HOOK", "EVENT", "MATCHES", "SCOPE", "PRIORITY", "GRANTED", "SOURCE", "DESCRIPTION"];
/// Maximum characters of a condition in the table.
const MAX_CONDITION: usize = 60;

/// List tools and hooks with their permissions.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Also list tools disabled by a rule, their definition or a policy, with the reason, and the permissions of hooks
    #[arg(long)]
    all: bool,
    /// Print a JSON array, one object per tool, each with what it `needs` (`null` if undeclared), its `hooks` and, if MCP
    /// clients see another name, its `mcpName`;
    /// with --all also one per hook, with an `event`
    #[arg(long)]
    json: bool,
    /// Also list `run_code`, which runs programs that call the tools, and the search for them, as `run --code` offers them
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    args.sources = args.sources.offering_code(args.code);
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    args.sources.hint_builtin();
    args.sources.hint_untrusted(&runtime, None);
    let names = names_for_clients(&runtime);
    let tools = || runtime.tools().chain(code_tools(&runtime));
    if args.json {
        let listed = tools().filter(|tool| args.all || tool.unusable.is_some() || disabled(&runtime, tool).is_none());
        let tools = listed.map(|tool| tool_record(&runtime, tool, &names));
        let hooks = runtime.hooks().filter(|_| args.all).map(|hook| hook_record(&runtime, hook));
        let all: Vec<Value> = tools.chain(hooks).collect();
        render::print_json(&serde_json::to_string(&all)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (closed, open): (Vec<&Tool>, Vec<&Tool>) = tools().partition(|tool| disabled(&runtime, tool).is_some());
    let gap = if open.is_empty() { "" } else { "\n" };
    if open.is_empty() {
        render::aside("no usable tools");
    } else {
        render::print(&render::table(HEADINGS, open.into_iter().map(|tool| row(&runtime, tool))))?;
    }
    // Broken tools are always listed; tools disabled by a decision only with `--all`.
    let (listed, hidden): (Vec<&Tool>, Vec<&Tool>) =
        closed.into_iter().partition(|tool| args.all || tool.unusable.is_some());
    if !listed.is_empty() {
        let rows = listed.into_iter().map(|tool| disabled_row(&runtime, tool));
        render::print(&format!("{gap}{}", render::table(DISABLED_HEADINGS, rows)))?;
    }
    let renamed: Vec<[String; 2]> = runtime.tools().filter_map(|tool| renamed_row(tool, &names)).collect();
    if !renamed.is_empty() {
        render::print(&format!("\n{}", render::table(RENAMED_HEADINGS, renamed.into_iter())))?;
    }
    match hidden.len() {
        0 => {}
        1 => render::hint("1 tool is disabled; `toolcrib list --all` shows the reason"),
        several => {
            let tools = render::counted(several, "tool");
            render::hint(&format!("{tools} are disabled; `toolcrib list --all` shows the reasons"));
        }
    }
    if runtime.hooks().next().is_some() {
        let table = match args.all {
            true => render::table(ALL_HOOK_HEADINGS, runtime.hooks().map(|hook| whole_hook_row(&runtime, hook))),
            false => render::table(HOOK_HEADINGS, runtime.hooks().map(hook_row)),
        };
        render::print(&format!("\n{table}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tool_record(runtime: &Runtime, tool: &Tool, names: &Names) -> Value {
    let mut record = record(runtime, tool, granted(runtime, tool));
    record["needs"] = tool.requested.declared.then(|| needs(tool)).into();
    if let Some(name) = renamed(tool, names) {
        record["mcpName"] = json!(name);
    }
    let hook = |hook: &ScriptedHook| {
        let source = hook.tool.origin.path.to_string_lossy();
        json!({ "name": hook.tool.name, "event": hook.event.to_string(), "source": source, "scope": hook.scope })
    };
    record["hooks"] = runtime.hooks().filter(|hook| hook.handles(tool)).map(hook).collect();
    record
}

/// Returns the name of a tool for MCP clients if it is another one.
fn renamed<'n>(tool: &'n Tool, names: &'n Names) -> Option<&'n str> {
    Some(names.get(&tool.name)).filter(|name| *name != tool.name)
}

fn renamed_row(tool: &Tool, names: &Names) -> Option<[String; 2]> {
    Some([render::one_line(&tool.name), renamed(tool, names)?.to_owned()])
}

fn record(runtime: &Runtime, tool: &Tool, granted: Vec<String>) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "source": {
            "format": tool.origin.format,
            "path": tool.origin.path.to_string_lossy(),
            "index": tool.origin.index,
            "builtin": builtin::holds(&tool.origin.path),
        },
        "program": tool.body.program().map(|program| program.to_string_lossy()),
        "granted": granted,
        "disabled": disabled(runtime, tool),
    })
}

fn disabled_row(runtime: &Runtime, tool: &Tool) -> [String; 4] {
    let why = render::one_line(disabled(runtime, tool).unwrap_or_default());
    [render::one_line(&tool.name), why, source(tool), first_sentence(tool)]
}

fn hook_record(runtime: &Runtime, hook: &ScriptedHook) -> Value {
    let mut record = record(runtime, &hook.tool, granted_to_hook(runtime, &hook.tool));
    record["event"] = json!(hook.event.to_string());
    record["priority"] = json!(hook.priority);
    record["scope"] = json!(hook.scope);
    let arguments = hook.when.arguments.iter().map(|(name, glob)| (name.clone(), json!(glob.as_str()))).collect();
    record["when"] = json!({
        "tools": hook.when.tools.iter().map(Glob::as_str).collect::<Vec<_>>(),
        "args": Value::Object(arguments),
        "expression": hook.when.expression,
    });
    record
}

fn row(runtime: &Runtime, tool: &Tool) -> [String; 5] {
    let needs = if tool.requested.declared { permissions(&needs(tool)) } else { "undeclared".to_owned() };
    let granted = permissions(&granted(runtime, tool));
    [render::one_line(&tool.name), needs, granted, source(tool), first_sentence(tool)]
}

fn hook_row(hook: &ScriptedHook) -> [String; 5] {
    let name = render::one_line(&hook.tool.name);
    let scope = match hook.scope {
        HookScope::AllSources => "all sources",
        _ => "own source",
    };
    [name, render::one_line(&hook.event.to_string()), condition(hook), scope.to_owned(), source(&hook.tool)]
}

fn whole_hook_row(runtime: &Runtime, hook: &ScriptedHook) -> [String; 8] {
    let [name, event, matches, scope, source] = hook_row(hook);
    let granted = permissions(&granted_to_hook(runtime, &hook.tool));
    [name, event, matches, scope, hook.priority.to_string(), granted, source, first_sentence(&hook.tool)]
}

/// Formats the condition of a hook like a rule's pattern, such as `fs_*(path=*.md)`; `-` for an event without a tool
/// and a condition.
fn condition(hook: &ScriptedHook) -> String {
    let (tools, of_calls) = (&hook.when.tools, matches!(hook.event, HookPoint::ToolPre | HookPoint::ToolPost));
    let mut text = match (tools.is_empty(), of_calls) {
        (true, true) => "*".to_owned(),
        (true, false) => String::new(),
        _ => tools.iter().map(Glob::as_str).collect::<Vec<_>>().join(","),
    };
    let arguments: Vec<_> =
        hook.when.arguments.iter().map(|(name, glob)| format!("{name}={}", glob.as_str())).collect();
    if !arguments.is_empty() {
        text += &format!("({})", arguments.join(", "));
    }
    if let Some(expression) = &hook.when.expression {
        text += &format!(" if {expression}");
    }
    match text.trim() {
        "" => "-".to_owned(),
        text => render::shortened(&render::one_line(text), MAX_CONDITION).into_owned(),
    }
}

/// Returns the granted capabilities of a hook. A hook may share a name with a tool, so its definition is compared.
fn granted_to_hook(runtime: &Runtime, tool: &Tool) -> Vec<String> {
    let mut grants = runtime.grants();
    grants.find(|(of, _)| std::ptr::eq(*of, tool)).map(|(_, grant)| grant.granted()).unwrap_or_default()
}
