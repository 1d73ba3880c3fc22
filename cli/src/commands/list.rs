//! `toolcrib list`: the tools there are and what each may use, without running any.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::tool::Limits;
use toolcrib::{Runtime, Tool};

use crate::options::Sources;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib list --tools ./tools.json --allow-read=./docs
  toolcrib list --json | jq -r '.[].name'";
const HEADINGS: [&str; 4] = ["NAME", "MAY USE", "SOURCE", "DESCRIPTION"];
/// The widest that a column but the last may be on a terminal.
const WIDEST: usize = 32;

/// List the tools and what each may use.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print a JSON array, one object a tool
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = args.sources.runtime(Limits::default().deadline, [])?;
    if args.json {
        let tools: Vec<Value> = runtime.tools().map(|tool| record(&runtime, tool)).collect();
        render::print_json(&serde_json::to_string(&tools)?)?;
    } else {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        render::print(&table(runtime.tools().map(|tool| row(&runtime, tool)), width))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn record(runtime: &Runtime, tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "source": { "format": tool.origin.format, "path": tool.origin.path.to_string_lossy(), "index": tool.origin.index },
        "program": tool.body.program().to_string_lossy(),
        "granted": granted(runtime, tool),
    })
}

fn row(runtime: &Runtime, tool: &Tool) -> [String; 4] {
    let granted = granted(runtime, tool);
    let description = render::one_line(tool.description.as_deref().unwrap_or_default());
    let first_sentence = description.split_inclusive(". ").next().unwrap_or_default();
    [
        render::one_line(&tool.name),
        if granted.is_empty() { "nothing".to_owned() } else { render::one_line(&granted.join(", ")) },
        render::one_line(&render::from_here(&tool.origin.path).to_string_lossy()),
        first_sentence.trim_end_matches(['.', ' ']).to_owned(),
    ]
}

fn granted(runtime: &Runtime, tool: &Tool) -> Vec<String> {
    runtime.grant(&tool.name).map(|grant| grant.granted()).unwrap_or_default()
}

/// Aligns the columns; where there is a width, each line is cut to it.
fn table(rows: impl Iterator<Item = [String; 4]>, width: Option<usize>) -> String {
    let rows: Vec<_> = std::iter::once(HEADINGS.map(str::to_owned)).chain(rows).collect();
    let widest = if width.is_some() { WIDEST } else { usize::MAX };
    let columns = [0, 1, 2].map(|column| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0).min(widest)
    });
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (cell, column) in row.iter().zip(columns) {
            line += &format!("{:column$}  ", render::shortened(cell, column));
        }
        line += &row[3];
        render::shortened(line.trim_end(), width.unwrap_or(usize::MAX)).into_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_terminal_and_is_whole_in_a_pipe() {
        let row =
            || ["get_time", "nothing", "./tools.json", "Get the current time for an IANA timezone"].map(str::to_owned);
        let narrow = table([row()].into_iter(), Some(50));
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
        let whole = table([row()].into_iter(), None);
        assert_eq!(
            whole.lines().last(),
            Some("get_time  nothing  ./tools.json  Get the current time for an IANA timezone")
        );
    }
}
