//! `toolcrib audit forward`: sends the audit log to another machine, and goes on where it stopped.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use toolcrib_base::interrupt;
use toolcrib_base::parse::duration;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_forward::{ForwardSummary, ForwardTarget, Forwarding, host_name};
use toolcrib_sources::options::AuditLog;

use super::note_beginning;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit forward https://otel.example.com --follow
  toolcrib audit forward syslog+tls://log.example.com --follow
  toolcrib audit forward s3://logs/toolcrib/host1 --follow
  toolcrib audit forward /var/spool/toolcrib
  toolcrib audit verify --against /var/spool/toolcrib  compare the copy with the log

Targets: `https://HOST` and `http://HOST` are OpenTelemetry collectors, which get OTLP/JSON at `/v1/logs`; \
`syslog+tls://HOST` and `syslog://HOST` get messages of RFC 5424; `s3://BUCKET/PREFIX` gets one object per batch, with \
`?endpoint=https://HOST` at another server than Amazon's; \
a directory or `file:///DIR` gets one file per batch.

Every record is sent in order and at least once, with its logged arguments, its number (`seq`) and its chain value. A file \
next to the log records the progress, so the next start continues there; one process at a time forwards to a target. Records \
that were removed before they were sent are an error, and the others are sent.

OTEL_EXPORTER_OTLP_HEADERS has headers for a collector, such as `authorization=Bearer%20TOKEN`. A bucket is opened with \
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a web identity or the role of the machine, in AWS_REGION.

Exit status: 0 everything is sent, 1 the target did not accept records, or records are missing, changed or rejected.";
/// Default time for further attempts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for the last records after an interruption.
const LAST_ATTEMPTS: Duration = Duration::from_secs(5);
/// Name of a machine without one.
const NAMELESS: &str = "localhost";

/// Send the log to another machine: each record at least once.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Place to send to: `https://HOST`, `syslog+tls://HOST[:PORT]`, `syslog://HOST[:PORT]`, `s3://BUCKET/PREFIX` or a directory
    #[arg(value_name = "TARGET")]
    target: ForwardTarget,
    /// Wait for further records, until the program is interrupted
    #[arg(long)]
    follow: bool,
    /// Leave out the arguments of calls; what may quote one, too, so that such a copy proves nothing without the log
    #[arg(long)]
    without_arguments: bool,
    /// Name of this machine in what is sent [default: its host name]
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Option<String>,
    /// Time for further attempts after a failure [default: 1m; without end with --follow]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    retry_time: Option<Duration>,
    /// File with the progress of this target; `audit prune` finds it only next to the log [default: next to the log]
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: AuditLog,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { target, follow, without_arguments, host, retry_time, cursor, json, log } = args;
    let log = match log.begun()? {
        None if !follow => {
            note_beginning();
            if json {
                let target = target.to_string();
                render::print_json(&serde_json::to_string(&ForwardSummary { target, ..ForwardSummary::default() })?)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(log) => log,
        None => log.folder()?,
    };
    let target = target.at_environment()?;
    if target.is_exposed() {
        render::warning(&format!("records are sent to {target} without encryption"));
    }
    let forwarding = Forwarding {
        log,
        target,
        cursor,
        is_following: follow,
        has_arguments: !without_arguments,
        host: host.or_else(host_name).unwrap_or_else(|| NAMELESS.to_owned()),
        patience: retry_time.or((!follow).then_some(PATIENCE)),
    };
    let summary = if follow {
        // What is in the log by then is still sent.
        let _guard = interrupt::server();
        tokio::select! {
            summary = forwarding.run() => summary?,
            () = given_up() => {
                let hint = "the next start with this target sends the rest";
                // An interrupted command ends with the code of its signal, and its error is not shown.
                render::explain(&Advice::new("interrupted before all records were sent", hint).into());
                return Ok(ExitCode::FAILURE);
            }
        }
    } else {
        forwarding.run().await?
    };
    if json {
        render::print_json(&serde_json::to_string(&summary)?)?;
    } else {
        render::print(&described(&summary))?;
    }
    Ok(if summary.problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits until an interrupted command has had its time, or is interrupted again.
async fn given_up() {
    interrupt::soft_stop().await;
    // On a second interruption, or in the end.
    let _ = tokio::time::timeout(LAST_ATTEMPTS, interrupt::hard_stop()).await;
}

fn described(summary: &ForwardSummary) -> String {
    let sent = format!("{} sent to {}", counted(summary.sent, "record"), summary.target);
    match summary.seq.zip(summary.head) {
        Some((seq, head)) => format!("{sent}, seq {seq}, head {head}"),
        None => sent,
    }
}

/// Parses the name of a machine.
fn host(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(text.to_owned()) } else { Err("expected at most 255 visible ASCII characters".to_owned()) }
}
