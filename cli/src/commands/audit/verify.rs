//! `toolcrib audit verify`: whether the log is still what was written.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use serde::Serialize;
use toolcrib::audit::{self, Chain, LogProblem, Severity, Summary};

use crate::options::AuditLog;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit verify
  toolcrib audit verify --json | jq -r .head     the chain after the last record: note it elsewhere
  toolcrib audit verify --head 5213e498…810e     and later give what you noted

Every record carries a chain value that follows from itself and from all records before it, so a
line that was changed, removed, added or moved is found. Whoever may write the folder can also write
a new log, chain and all: that is found where a value of the old one was noted and is given here.

Each problem is one line on standard output. A warning is something that the chain says nothing
about: records from before there was one, or half a line of a program that was killed.

Exit status: 0 sound, 1 with errors, or with warnings under --strict.";

/// Verify that nobody changed the log.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A chain value that was noted earlier and must occur; may be repeated
    #[arg(long, value_name = "CHAIN")]
    head: Vec<Chain>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Print one object: what the log holds, and every problem
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: AuditLog,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut verification = args.head.iter().fold(audit::verify(args.log.folder()?)?, |log, head| log.noted(*head));
    let (mut sound, mut problems) = (true, Vec::new());
    for problem in &mut verification {
        let problem = problem?;
        sound &= problem.severity == Severity::Warning && !args.strict;
        if args.json {
            problems.push(problem);
        } else {
            render::print(&line(&problem))?;
        }
    }
    let summary = verification.summary();
    if args.json {
        print_json(sound, summary, &problems)?;
    } else {
        render::print(&words(summary))?;
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(problem: &LogProblem) -> String {
    let (severity, tone) = match problem.severity {
        Severity::Error => ("error:", render::Tone::Bad),
        Severity::Warning => ("warning:", render::Tone::Doubtful),
    };
    let place = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
    let said = format!("{}{place}: {}", render::from_here(&problem.file).display(), problem.found);
    format!("{} {}", render::paint(tone, severity, io::stdout().is_terminal()), render::one_line(&said))
}

fn words(summary: Summary) -> String {
    let Summary { files, records, first, last, head } = summary;
    let mut words = format!("{}, {}", number(files as u64, "file"), number(records, "record"));
    if let (Some(first), Some(last), Some(head)) = (first, last, head) {
        words += &format!(", seq {first} to {last}, head {head}");
        if first > 1 {
            words += &format!("\nthe log begins with record {first}: what came before it is not in this folder");
        }
    }
    words
}

fn print_json(sound: bool, summary: Summary, problems: &[LogProblem]) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        sound: bool,
        #[serde(flatten)]
        summary: Summary,
        problems: Vec<Told<'a>>,
    }
    #[derive(Serialize)]
    struct Told<'a> {
        #[serde(flatten)]
        problem: &'a LogProblem,
        message: String,
    }
    let problems = problems.iter().map(|problem| Told { problem, message: problem.found.to_string() }).collect();
    render::print_json(&serde_json::to_string(&Report { sound, summary, problems })?)
}

fn number(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
