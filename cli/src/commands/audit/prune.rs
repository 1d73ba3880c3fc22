//! `toolcrib audit prune`: removes old files of the log, except those that a forwarder has not sent.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use toolcrib::audit::Day;
use toolcrib_base::parse::lifetime;
use toolcrib_base::render::{self, counted, shell_word};
use toolcrib_forward::{PrunedLog, prune};
use toolcrib_sources::options::AuditLog;

use super::note_beginning;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit prune --older-than 90d --dry-run
  toolcrib audit prune --older-than 52w

The log has one file per UTC day. Whole files are removed, oldest first; the newest one stays. A file with records that were \
not sent to a target with a `forward-….json` next to the log stays too: remove that file if you no longer use the target. \
Progress files elsewhere (`audit forward --cursor`) are not found.

`toolcrib audit verify` then states the log's first record. Keep the head that it printed before, or a forwarded copy.

Exit status: 0 removed or nothing to remove, 1 files stay because they were not sent.";

/// Remove log files older than an age.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Age of the days to remove, such as `90d` or `52w`
    #[arg(long, value_name = "AGE", value_parser = lifetime)]
    older_than: Duration,
    /// List the files and remove none
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: AuditLog,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let oldest = Day::of(SystemTime::now().checked_sub(args.older_than).unwrap_or(SystemTime::UNIX_EPOCH));
    let pruned = match args.log.begun()? {
        Some(folder) => prune(&folder, oldest, args.dry_run)?,
        None => {
            note_beginning();
            PrunedLog::default()
        }
    };
    if args.json {
        render::print_json(&serde_json::to_string(&pruned)?)?;
    } else {
        let done = if args.dry_run { "would remove" } else { "removed" };
        for path in &pruned.removed {
            render::print(&render::one_line(&render::from_here(path).display().to_string()))?;
        }
        render::print(&format!("{done} {}", counted(pruned.removed.len(), "file")))?;
    }
    if let Some(target) = &pruned.target {
        let files = counted(pruned.not_sent.len(), "file");
        render::warning(&format!("{files} not removed: not sent to {target} yet"));
        render::hint(&format!("`toolcrib audit forward {}` sends the records", shell_word(target)));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
