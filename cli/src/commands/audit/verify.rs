//! `toolcrib audit verify`: checks the chain of the audit log, compares it with copies and with the heads in the database of
//! `server.store`, and reports every problem.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use toolcrib::audit::{self, Chain, LogProblem, LogProblemKind, Severity, Summary, Verification};
use toolcrib_base::progress;
use toolcrib_base::render::{self, counted};
use toolcrib_forward::{BucketAddress, CopyReport, compare, fetch_copy};
use toolcrib_settings::audit_facts::describe;
use toolcrib_settings::config::Config;
use toolcrib_settings::trust::{TrustRecords, Trusted};
use toolcrib_shared_state::StateStore as _;
use toolcrib_sources::options::AuditLog;

use super::heads::NotedHead;
use super::{AuditHeads, note_beginning};
use crate::commands::mcp::connect_store;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit verify
  toolcrib audit verify --json | jq -r .head  the chain value to keep
  toolcrib audit verify --head 5213e498…810e  check for a value noted earlier
  toolcrib audit verify --against copy.log    compare a forwarded copy

Every record has a chain value, computed from the record and all records before it, so a line that \
was changed, removed, added or moved is detected. Anyone who can write the folder can also write a \
whole new log with a valid chain. To detect that, note a chain value elsewhere and pass it with \
--head.

Each problem is one line on standard output. A warning is something that the chain does not cover: \
records without a chain value, or an incomplete line of a program that was killed.

With `server.store`, the servers note the last record of their log in the database, every ten seconds and at their end. These \
heads are expected like values of --head; those before the first record of the log were moved away with their records.

A copy for --against is a file or a directory with records as `toolcrib audit forward` sent them: its files, the lines \
of a syslog receiver, the lines of a collector's file exporter, or the objects of a bucket. Missing, changed and additional \
records are errors; records that were not sent yet are not.

Before the first call there is no log. That is an error only with --head or --strict, because a removed log looks the same.

Exit status: 0 no problems, 1 errors, or warnings with --strict.";

/// Verify that the log was not changed.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// A chain value that was noted earlier and must be in the log; may be repeated
    #[arg(long, value_name = "CHAIN")]
    head: Vec<Chain>,
    /// Compare a forwarded copy with the log: a path or `s3://BUCKET/PREFIX`; may be repeated for the parts of one copy
    #[arg(long, value_name = "COPY")]
    against: Vec<LogCopy>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print one JSON object: a summary of the log, and every problem
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: AuditLog,
    /// Settings file with the database of `server.store`, which has heads of the log
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
}

/// Copy of the log.
#[derive(Debug, Clone)]
enum LogCopy {
    Path(PathBuf),
    Bucket(BucketAddress),
}

impl FromStr for LogCopy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("s3://") { text.parse().map(Self::Bucket) } else { Ok(Self::Path(text.into())) }
    }
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let noted = noted(&args).await?;
    // The log has existed if one of its values was noted.
    let is_noted = !args.head.is_empty() || noted.iter().flatten().next().is_some();
    let may_be_missing = !is_noted && args.against.is_empty() && !args.strict;
    let folder = if may_be_missing { args.log.begun()? } else { Some(args.log.folder()?) };
    let Some(folder) = folder else {
        note_beginning();
        if args.json {
            print_json(true, Summary::default(), &[], None, noted.as_deref())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let chains: Vec<(u64, Chain)> =
        noted.iter().flatten().map(|head| Ok((head.seq, head.chain()?))).collect::<anyhow::Result<_>>()?;
    let expected = args.head.iter().copied().chain(chains.iter().map(|(_, chain)| *chain));
    let mut verification = expected.fold(audit::verify(&folder)?, Verification::expect);
    let (mut sound, mut problems) = (true, Vec::new());
    while let Some(problem) = verification.next() {
        let problem = problem?;
        if was_moved_away(&problem, &chains, verification.summary()) {
            continue;
        }
        sound &= problem.severity == Severity::Warning && !args.strict;
        if args.json {
            problems.push(problem);
        } else {
            render::print_screen(&line(&problem))?;
        }
    }
    let summary = verification.summary();
    let copy = if args.against.is_empty() { None } else { Some(compared(&folder, args.against).await?) };
    sound &= copy.as_ref().is_none_or(|copy| copy.differences == 0);
    if args.json {
        print_json(sound, summary, &problems, copy.as_ref(), noted.as_deref())?;
    } else {
        render::print_screen(&describe(summary))?;
        if let Some(noted) = &noted {
            let last = noted.last().map(|last| format!(", the last one of record {} at {:.0}", last.seq, last.noted));
            let heads = counted(noted.len(), "head");
            render::print(&format!("shared store: {heads} of this log{}", last.unwrap_or_default()))?;
        }
        copy.iter().flat_map(described).try_for_each(|line| render::print(&line))?;
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares copies with the log. Objects of buckets are first fetched into a folder of their own.
async fn compared(log: &Path, copies: Vec<LogCopy>) -> anyhow::Result<CopyReport> {
    let (mut paths, mut fetched, mut folders) = (Vec::new(), Vec::new(), Vec::new());
    for copy in copies {
        match copy {
            LogCopy::Path(path) => paths.push(path),
            LogCopy::Bucket(address) => {
                let folder = tempfile::tempdir()?;
                let fetching =
                    progress::during(format!("fetching {address}"), fetch_copy(address.clone(), folder.path()));
                let (target, others) = fetching.await?;
                if others > 0 {
                    let objects = counted(others, "object");
                    render::warning(&format!(
                        "{objects} in {target} with other names than those of a forwarder: left out"
                    ));
                }
                fetched.push(target);
                paths.push(folder.path().to_path_buf());
                folders.push(folder);
            }
        }
    }
    compare(log, &paths, &fetched)
}

/// Reads the noted heads from the configured database, oldest first; `None` without a database.
async fn noted(args: &Args) -> anyhow::Result<Option<Vec<NotedHead>>> {
    let trusted = Trusted::read(&[], TrustRecords::of_user().as_ref())?;
    let Some(settings) = Config::load(args.config.as_deref(), &trusted, false)?.store else { return Ok(None) };
    let store = Arc::new(connect_store(&settings).await?);
    let noted = AuditHeads::new(store.clone(), &args.log.folder()?).noted();
    store.close().await;
    noted.map(Some)
}

/// Returns `true` for a noted head before the first record of the log. The last head is always expected.
fn was_moved_away(problem: &LogProblem, noted: &[(u64, Chain)], summary: Summary) -> bool {
    let LogProblemKind::NotedMissing { chain } = &problem.kind else { return false };
    let older = noted.split_last().map_or(&[][..], |(_, older)| older);
    older.iter().any(|(seq, noted)| noted == chain && summary.first.is_some_and(|first| *seq < first))
}

/// Describes a copy: its differences, and then its records.
fn described(copy: &CopyReport) -> Vec<String> {
    let mut lines: Vec<String> = copy.found.iter().map(|found| labelled(Severity::Error, &found.to_string())).collect();
    let more = copy.differences - copy.found.len() as u64;
    if more > 0 {
        lines.push(labelled(Severity::Error, &format!("{} more", counted(more, "difference"))));
    }
    let mut text = format!("copy: {}", counted(copy.records, "record"));
    if let (Some(first), Some(last)) = (copy.first, copy.last) {
        text += &format!(", seq {first} to {last}, {}", counted(copy.differences, "difference"));
    }
    for (count, meaning) in [
        (copy.repeated, "repeated"),
        (copy.without_arguments, "without their arguments, which are not compared"),
        (copy.only_in_copy, "no longer in the log and proven by the copy's chain"),
        (copy.further_versions, "not compared: the copy has more than 8 versions of a record"),
        (copy.not_sent, "of the log not forwarded yet"),
    ] {
        if count > 0 {
            text += &format!("\n{count} {meaning}");
        }
    }
    if copy.other_lines > 0 {
        text += &format!("\n{} without a record", counted(copy.other_lines, "line"));
    }
    lines.push(text);
    lines
}

fn line(problem: &LogProblem) -> String {
    let position = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
    let text = format!("{}{position}: {}", render::from_here(&problem.file).display(), problem.kind);
    labelled(problem.severity, &text)
}

fn labelled(severity: Severity, text: &str) -> String {
    let (severity, tone) = match severity {
        Severity::Error => ("error:", render::Tone::Bad),
        Severity::Warning => ("warning:", render::Tone::Doubtful),
    };
    format!("{} {}", render::paint(tone, severity, io::stdout().is_terminal()), render::one_line(text))
}

fn print_json(
    sound: bool,
    summary: Summary,
    problems: &[LogProblem],
    copy: Option<&CopyReport>,
    noted: Option<&[NotedHead]>,
) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        sound: bool,
        #[serde(flatten)]
        summary: Summary,
        problems: Vec<Described<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        copy: Option<&'a CopyReport>,
        #[serde(skip_serializing_if = "Option::is_none")]
        noted: Option<&'a [NotedHead]>,
    }
    #[derive(Serialize)]
    struct Described<'a> {
        #[serde(flatten)]
        problem: &'a LogProblem,
        message: String,
    }
    let problems = problems.iter().map(|problem| Described { problem, message: problem.kind.to_string() }).collect();
    render::print_json(&serde_json::to_string(&Report { sound, summary, problems, copy, noted })?)
}
