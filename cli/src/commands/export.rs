//! `toolcrib export`: tool definitions in a standard format. Nothing is executed.

mod skill;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use serde_json::Value;
use toolcrib::tool::{Body, Limits};
use toolcrib::{Runtime, Tool, source};
use toolcrib_agent_tool::{Inventory, InventoryEntry, SchedulerPolicy};
use toolcrib_base::render;
use toolcrib_sources::options::Sources;

const EXAMPLES: &str = "\
Examples:
  toolcrib export | jq '.declarations[].tool_id'
  toolcrib export --tools ./tools.json --allow-read=./docs --out ./records
  toolcrib export --format skill --out ./.claude/skills

With --format skill, writes an Agent Skill, the folder NAME with a SKILL.md that teaches an agent to use these \
tools from the command line; without --out, prints \
the SKILL.md. The skill names the sources as --tools does.

With --format agent-tool and without --out, prints one JSON object with an array for each kind of Agent Tool record. With \
--out, writes one file per kind and one record per line: declarations.ndjson, interfaces.ndjson, \
execution-profiles.ndjson, permission-profiles.ndjson, scheduler-policies.ndjson, \
deferred-tools.ndjson, surfaces.ndjson. The profiles state what the flags allow.";

/// Tools of the host itself, exported if the runtime has them.
const BUILTINS: [&str; 4] = ["tool_search", "read_result", "task_poll", "task_await"];

/// Export tool definitions in a standard format.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Name of the skill and of its folder, for `--format skill` [default: toolcrib]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write files to this folder instead of standard output, replacing earlier exports
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Records of the Agent Tool draft, version 0.2.0.
    #[default]
    AgentTool,
    /// Agent Skill: a `SKILL.md` for agents that use the command line.
    Skill,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    // References stay as they were given, and are not replaced by the paths of their copies.
    let sources = args.sources.tools.clone();
    let name = match (args.format, args.name.as_deref()) {
        (Format::AgentTool, Some(_)) => return Err(render::usage_error("--name requires `--format skill`")),
        (_, name) => name.unwrap_or(skill::DEFAULT_NAME).to_owned(),
    };
    skill::check_name(&name)?;
    args.sources.fetch().await?;
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    match args.format {
        Format::AgentTool => records(&inventory(&runtime, args.sources.at_once()), args.out.as_deref())?,
        Format::Skill => {
            let text = skill::text(&runtime, &name, &sources);
            match &args.out {
                Some(folder) => {
                    let path = skill::write(folder, &name, &text)?;
                    render::aside(&format!("wrote {}", render::from_here(&path).display()));
                }
                None => render::print(text.trim_end())?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the records, one file per kind, or prints them.
fn records(inventory: &Inventory, out: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = out else { return render::print_json(&serde_json::to_string(inventory)?) };
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    inventory.kinds().into_iter().try_for_each(|(kind, records)| write(folder, kind, records))
}

/// Describes the tools of a runtime.
fn inventory(runtime: &Runtime, max_parallel: usize) -> Inventory {
    let scheduler = runtime.scheduler();
    let policy =
        SchedulerPolicy { max_parallel, max_calls: scheduler.calls, sibling_failure: scheduler.sibling_failure };
    let tools = runtime.tools().chain(BUILTINS.into_iter().filter_map(|name| runtime.tool(name)));
    let mut digests = HashMap::new();
    Inventory::new(tools.filter_map(|tool| entry(runtime, tool, &mut digests)), policy, SystemTime::now())
}

/// Collects the facts about a tool. Each program is read once.
fn entry<'a>(
    runtime: &'a Runtime,
    tool: &'a Tool,
    digests: &mut HashMap<PathBuf, Option<String>>,
) -> Option<InventoryEntry<'a>> {
    let (grant, limits) = (runtime.grant(&tool.name)?, runtime.limits(&tool.name)?);
    let mut of_program = |program: &Path| {
        let digest = || source::fingerprint(program).ok().map(|program| program.digest);
        digests.entry(program.to_path_buf()).or_insert_with(digest).clone()
    };
    let digest = match &tool.body {
        Body::Script(script) => Some(script.digest.clone()),
        Body::Skill(skill) | Body::SkillScripts(skill) => Some(skill.digest.clone()),
        body => body.program().and_then(&mut of_program),
    };
    Some(InventoryEntry { tool, grant, limits, digest, availability: runtime.availability(&tool.name)? })
}

/// Writes the records of a kind, one per line.
fn write(folder: &Path, kind: &str, records: &[Value]) -> anyhow::Result<()> {
    let path = folder.join(kind.replace('_', "-")).with_extension("ndjson");
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(&path, lines).with_context(|| format!("cannot write `{}`", path.display()))
}
