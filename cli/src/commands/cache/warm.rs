//! `toolcrib cache warm`: compiles all tools ahead of their first call, and checks that the cache has them.

use std::process::ExitCode;

use toolcrib::tool::Limits;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_sources::options::Sources;

const EXAMPLES: &str = "\
Examples:
  toolcrib cache warm                              the tools of this directory, and the installed ones
  toolcrib cache warm --tools ./tools.json
  toolcrib cache warm --set cache.dir=./cache      into a directory that you copy into an image

A process with the same version of toolcrib, the same kind of processor and the same cache directory then compiles none of \
them. The interpreters of programs (`run_code`) are compiled at their first use.
Exit status: 0 if the cache has every tool, 1 otherwise.";

/// Compile all tools into the cache, and fail if one is not there in the end.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    sources: Sources,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // A tool that cannot be compiled is an error.
    let mut sources = args.sources;
    sources.strict = true;
    sources.fetch().await?;
    let runtime = sources.runtime(Limits::default().deadline, [])?;
    sources.prepare(&runtime, true).await?;
    let (mut tools, mut missing) = (0, Vec::new());
    for tool in runtime.tools() {
        tools += 1;
        if !runtime.is_cached(&tool.name).await {
            missing.push(render::one_line(&tool.name));
        }
    }
    if missing.is_empty() {
        render::aside(&format!("{} compiled", counted(tools, "tool")));
        return Ok(ExitCode::SUCCESS);
    }
    let message =
        format!("the cache does not have {} of {tools}, `{}` first", counted(missing.len(), "tool"), missing[0]);
    Err(Advice::new(message, "`toolcrib doctor` checks whether the cache directory can be used").into())
}
