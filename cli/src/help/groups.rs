//! Commands of the program in groups.

use clap::Command;
use clap::builder::StyledStr;
use toolcrib_base::render::{filled, shortened};

/// Groups with their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run tools", &["run", "chat", "runs", "console", "call", "list", "mcp", "worker", "fleet", "result"]),
    ("Write tools", &["init", "new", "build", "test", "validate", "describe", "inspect", "schema", "export"]),
    ("Get and share tools", &["install", "update", "outdated", "remove", "bundle", "push", "pull", "login", "logout"]),
    ("Permissions", &["trust", "approvals", "secret", "key", "sign", "verify"]),
    ("Settings and records", &["config", "cache", "audit", "stage", "undo", "doctor", "completions"]),
    ("Other", &[]),
];
/// Maximum width of help.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;
const USAGE: &str = "Usage: toolcrib [OPTIONS] COMMAND";
/// Commands that the short help explains.
const FIRST: [&str; 7] = ["run", "call", "list", "init", "new", "trust", "doctor"];

/// Lists the commands of the program under their groups, in the long help.
pub(super) fn arrange(command: Command) -> Command {
    let width = width();
    let mut lines = Vec::new();
    let column = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0) + 4;
    for (heading, names) in grouped(&command) {
        lines.push(format!("\n{heading}:"));
        for name in names {
            let label = format!("  {name}");
            lines.push(filled(&format!("{label:column$}{}", about(&command, &name)), width));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n\n{{options}}{{after-help}}",
        lines.join("\n")
    );
    after(command, width).help_template(template)
}

/// Fills the examples behind the options, which [`clap`] would do without their columns.
pub(super) fn after(command: Command, width: usize) -> Command {
    // Paragraphs have no columns.
    let line = |line: &str| if line.starts_with(' ') { filled(line, width) } else { line.to_owned() };
    let filled = |text: &StyledStr| text.to_string().split('\n').map(line).collect::<Vec<_>>().join("\n");
    let (short, long) = (command.get_after_help().map(filled), command.get_after_long_help().map(filled));
    let command = if let Some(text) = short { command.after_help(text) } else { command };
    if let Some(text) = long { command.after_long_help(text) } else { command }
}

/// Replaces the short help of the program by one screen.
pub(super) fn brief(command: Command) -> Command {
    let width = width();
    let mut lines: Vec<String> = command.get_about().map(ToString::to_string).into_iter().collect();
    lines.extend([String::new(), USAGE.to_owned(), String::new()]);
    for name in FIRST {
        let text = about(&command, name);
        let text = shortened(&text, width.saturating_sub(10));
        lines.push(format!("  {name:6}  {text}"));
    }
    lines.push(String::new());
    for (heading, names) in grouped(&command) {
        lines.push(filled(&format!("{heading}: {}", names.join(", ")), width));
    }
    lines.push(String::new());
    lines.push(filled("Options of a command: `toolcrib COMMAND -h`", width));
    lines.push(filled("All commands with their purpose, and examples: `--help`", width));
    command.override_help(lines.join("\n") + "\n")
}

/// The groups with the commands that exist; commands of no group are in the last one.
fn grouped(command: &Command) -> Vec<(&'static str, Vec<String>)> {
    let visible: Vec<&str> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name).collect();
    let is_known = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let all = GROUPS.iter().enumerate().map(|(at, (heading, names))| {
        let named = names.iter().copied().filter(|name| visible.contains(name)).map(str::to_owned);
        let others = visible.iter().filter(|name| at + 1 == GROUPS.len() && !is_known(name));
        (*heading, named.chain(others.map(|name| (*name).to_owned())).collect::<Vec<_>>())
    });
    all.filter(|(_, names)| !names.is_empty()).collect()
}

fn about(command: &Command, name: &str) -> String {
    let below = command.find_subcommand(name);
    below.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
}

/// Width of help, which [`clap`] determines in the same way.
pub(super) fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let stated = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    terminal.or_else(stated).unwrap_or(MAX_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        use clap::CommandFactory;
        let command = crate::Cli::command();
        let grouped = grouped(&command);
        let mut all: Vec<&String> = grouped.iter().flat_map(|(_, names)| names).collect();
        assert_eq!(all.len(), command.get_subcommands().filter(|below| !below.is_hide_set()).count());
        all.sort();
        all.dedup();
        assert_eq!(all.len(), grouped.iter().map(|(_, names)| names.len()).sum::<usize>());
    }
}
