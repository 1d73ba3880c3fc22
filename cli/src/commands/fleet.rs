//! `toolcrib fleet`: shows the workers of a NATS server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::{Value, json};
use toolcrib_base::parse::duration;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_workers::{FleetMember, fleet};

use super::remote::{NatsUrl, connect};

const EXAMPLES: &str = "\
Examples:
  toolcrib fleet status --nats nats://127.0.0.1:4222
  toolcrib fleet status --nats tls://nats.example.com --nats-creds me.creds --wait 3s
  toolcrib fleet status --nats nats://127.0.0.1:4222 --json | jq '.[] | select(.inFlight > 0)'

Each line is what a worker says about itself; one that drains takes no more calls. Other programs get the same through the service API \
of NATS, such as `nats micro stats toolcrib-worker`.

Exit status: 0 a worker answered, 1 none did, or failure.";
const HEADINGS: [&str; 8] = ["WORKER", "VERSION", "TOOLS", "RUNNING", "ANSWERED", "REFUSED", "BUSY", "ENDED"];

/// Show the workers of a NATS server.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Status(StatusArgs),
}

/// List the workers that answer, with their counts since their start.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
struct StatusArgs {
    /// NATS server, such as `nats://127.0.0.1:4222` or `tls://USER:PASSWORD@nats.example.com`
    #[arg(long, value_name = "URL")]
    nats: NatsUrl,
    /// Credentials file for the NATS server
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// Time to wait for the answers
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    wait: Duration,
    /// Print a JSON array, one object per worker
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Action::Status(args) = args.action;
    let connection = connect(&args.nats, args.nats_creds).await?;
    let (workers, unread) = fleet(&connection, args.wait).await.map_err(|error| anyhow!(error))?;
    if args.json {
        render::print_json(&workers.iter().map(as_json).collect::<Value>().to_string())?;
    } else if !workers.is_empty() {
        render::print(&render::table(HEADINGS, workers.iter().map(row)))?;
    }
    if unread > 0 {
        render::warning(&format!("{} could not be read", render::counted(unread, "answer")));
    }
    if workers.is_empty() {
        let message = format!("no worker at {} answered", connection.address());
        let hint = "start one with `toolcrib worker --nats URL`, or give slow ones more time with `--wait 5s`";
        return Err(Advice::new(message, hint).into());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(worker: &FleetMember) -> [String; 8] {
    let FleetMember { worker: name, version, tools, places, in_flight, answered, refused, busy, ended, .. } = worker;
    let draining = if worker.is_draining { ", draining" } else { "" };
    let running = format!("{in_flight} of {places}{draining}");
    let counts = [answered, refused, busy, ended].map(ToString::to_string);
    let [answered, refused, busy, ended] = counts;
    [name.to_string(), one_line(version), tools.len().to_string(), running, answered, refused, busy, ended]
}

fn as_json(worker: &FleetMember) -> Value {
    json!({
        "worker": worker.worker.as_str(),
        "version": worker.version,
        "started": worker.started,
        "tools": worker.tools,
        "places": worker.places,
        "draining": worker.is_draining,
        "inFlight": worker.in_flight,
        "answered": worker.answered,
        "refused": worker.refused,
        "busy": worker.busy,
        "ended": worker.ended,
    })
}
