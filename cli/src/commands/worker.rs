//! `toolcrib worker`: runs calls of other machines, which arrive over NATS.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use serde_json::Map;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver};
use toolcrib::{Availability, Runtime};
use toolcrib_base::interrupt;
use toolcrib_base::parse::duration;
use toolcrib_base::render::{self, Advice};
use toolcrib_forward::host_name;
use toolcrib_sources::options::Sources;
use toolcrib_workers::{ServedTool, WorkerName, WorkerSettings, serve};

use super::remote::{NatsUrl, connect};

const EXAMPLES: &str = "\
Examples:
  toolcrib worker --nats nats://127.0.0.1:4222 --allow-read=/srv/data
  toolcrib worker --nats tls://nats.example.com --nats-creds worker.creds
  toolcrib call fs_list_dir '{\"path\":\"/\"}' --remote nats://127.0.0.1:4222
  toolcrib fleet status --nats nats://127.0.0.1:4222

A worker serves the tools of its sources that only read, each under the digest of its program. It \
judges every call by its own rules and permissions, and trusts no caller; a call that needs a \
person's approval is refused. After SIGTERM it takes no more calls and ends the running ones.";
/// Heading of the worker's options.
const WORKER: &str = "Worker";
/// Name of a worker on a machine without a name.
const NAMELESS: &str = "worker";

/// Run calls of other machines, which arrive over NATS.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// NATS server, such as `nats://127.0.0.1:4222` or `tls://USER:PASSWORD@nats.example.com`
    #[arg(long, value_name = "URL", help_heading = WORKER)]
    nats: NatsUrl,
    /// Credentials file for the NATS server
    #[arg(long, value_name = "FILE", help_heading = WORKER)]
    nats_creds: Option<PathBuf>,
    /// Name of the worker; random digits are added [default: the machine's name]
    #[arg(long, value_name = "NAME", help_heading = WORKER)]
    name: Option<WorkerName>,
    /// Time for the running calls after the first signal to end
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = WORKER)]
    drain: Duration,
    /// Time limit of a call if neither the tool nor its caller sets a shorter one
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = "Limits")]
    timeout: Duration,
    #[command(flatten)]
    sources: Sources,
}

/// Approver of a worker: no person is there to be asked.
struct Unattended;

impl Approver for Unattended {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(ready(ApprovalAnswer::Nobody))
    }

    fn can_answer(&self) -> bool {
        false
    }
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    // A wrong address is an error before anything is compiled.
    args.nats.parse()?;
    args.sources.fetch().await?;
    let runtime = args.sources.runtime_with(args.timeout, [], |builder| {
        // The caller stores a long result, if it stores any.
        builder.approver(Arc::new(Unattended)).application("worker", Map::new()).without_results()
    })?;
    args.sources.hint_untrusted(&runtime, None);
    args.sources.prepare(&runtime, true).await?;
    let (tools, others) = served(&runtime).await;
    if tools.is_empty() {
        let hint = "add tools that only read with `--tools`, and deny none of them; `toolcrib list` shows the tools of a directory";
        return Err(Advice::new("none of the tools can be served: a worker serves tools that only read", hint).into());
    }
    let connection = connect(&args.nats, args.nats_creds).await?;
    let address = connection.address().to_string();
    let name = args.name.unwrap_or_else(machine).unique();
    let settings = WorkerSettings { name: name.clone(), places: args.sources.at_once(), drain: args.drain };
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    let announce = || {
        let tools = render::counted(names.len(), "tool");
        render::aside(&format!("worker `{name}` serves {tools} at {address}: {}", render::listed(&names)));
        if others > 0 {
            let others = render::counted(others, "tool");
            render::hint(&format!("{others} not served: they may change something, are denied, or have no program"));
        }
    };
    let _guard = interrupt::server();
    let serving = serve(connection, runtime, tools, settings, announce, interrupt::soft_stop());
    let stopped = tokio::select! {
        stopped = serving => stopped?,
        () = interrupt::hard_stop() => return Ok(ExitCode::FAILURE),
    };
    if stopped > 0 {
        render::warning(&format!("{} stopped after the time to drain", render::counted(stopped, "call")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the tools that are served with their digests, and the number of the others.
async fn served(runtime: &Runtime) -> (Vec<ServedTool>, usize) {
    let (mut served, mut others) = (Vec::new(), 0);
    for tool in runtime.tools() {
        let is_usable = matches!(runtime.availability(&tool.name), Some(Availability::Loaded | Availability::Deferred));
        let digest = match is_usable && runtime.only_reads(&tool.name) {
            true => runtime.prepared_digest(&tool.name).await.ok().flatten(),
            false => None,
        };
        match digest {
            Some(digest) => served.push(ServedTool { name: tool.name.clone(), digest }),
            None => others += 1,
        }
    }
    (served, others)
}

/// Returns the machine's name in the form that workers have.
fn machine() -> WorkerName {
    let plain = |name: String| -> String {
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect()
    };
    let name = host_name().and_then(|name| plain(name).parse().ok());
    name.unwrap_or_else(|| NAMELESS.parse().expect("a plain word"))
}
