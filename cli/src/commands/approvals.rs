//! `toolcrib approvals`: what was agreed to for always, and how it is taken back.

use std::process::ExitCode;

use toolcrib::policy::{Approvals, StoredApproval};

use crate::options::Kept;
use crate::render::{self, Advice, one_line};

const EXAMPLES: &str = "\
Examples:
  toolcrib approvals list
  toolcrib approvals remove fs_write_file
  toolcrib approvals remove --all

An approval covers calls of one tool that one rule asks about, as long as the tool stays the same:
its program, fixed arguments, description, schema, limits, source and what it may use.";
const HEADINGS: [&str; 4] = ["TOOL", "ASKED BY", "GIVEN", "PROGRAM"];

/// Show or take back what you agreed to for always.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the approvals, the oldest first
    List {
        /// Print a JSON array, one object an approval
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        kept: Kept,
    },
    /// Take back the approvals of these tools, or all: you are asked again
    Remove {
        #[arg(value_name = "TOOL", required_unless_present = "all")]
        tools: Vec<String>,
        /// Take back every approval
        #[arg(long, conflicts_with = "tools")]
        all: bool,
        #[command(flatten)]
        kept: Kept,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List { json, kept } => list(&file(&kept)?.read()?, json)?,
        Action::Remove { tools, kept, .. } => remove(&file(&kept)?, &tools)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn file(kept: &Kept) -> anyhow::Result<Approvals> {
    kept.file().ok_or_else(|| {
        Advice::new("no file for approvals: you have no home folder", "name one with `--approvals FILE`").into()
    })
}

fn list(approvals: &[StoredApproval], json: bool) -> anyhow::Result<()> {
    if json {
        return render::print_json(&serde_json::to_string(approvals)?);
    }
    let row = |one: &StoredApproval| {
        [one_line(&one.tool), one_line(&one.rule), format!("{:.0}", one.given), one_line(&one.digest)]
    };
    render::print(&render::table(HEADINGS, approvals.iter().map(row)))?;
    let outdated = approvals.iter().filter(|one| one.definition.is_none()).count();
    if outdated > 0 {
        let removed = "`toolcrib approvals remove TOOL` removes them";
        render::hint(&format!("{outdated} of an earlier version, which no longer apply: {removed}"));
    }
    Ok(())
}

/// Takes back the approvals of `tools`, or all where none is named.
fn remove(approvals: &Approvals, tools: &[String]) -> anyhow::Result<()> {
    let known = approvals.read()?;
    if let Some(unknown) = tools.iter().find(|tool| !known.iter().any(|one| one.tool == **tool)) {
        let hint = "`toolcrib approvals list` shows what there is";
        return Err(Advice::new(format!("no approval of `{unknown}`: nothing was taken back"), hint).into());
    }
    let removed = approvals.remove(|one| tools.is_empty() || tools.contains(&one.tool))?;
    render::aside(&format!("approvals taken back: {removed}"));
    Ok(())
}
