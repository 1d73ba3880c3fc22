//! Commands of the program in groups.

use clap::Command;
use toolcrib_base::render::shortened;

/// Groups with their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run tools", &["run", "chat", "runs", "console", "call", "list", "mcp", "result"]),
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
            let text = about(&command, &name);
            let wrapped = wrapped(&text, width.saturating_sub(column).max(MIN_WIDTH / 2));
            for (at, line) in wrapped.iter().enumerate() {
                let label = if at == 0 { format!("  {name}") } else { String::new() };
                lines.push(format!("{label:column$}{line}"));
            }
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n\n{{options}}{{after-help}}",
        lines.join("\n")
    );
    command.help_template(template)
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
        let indent = 2;
        let all = format!("{heading}: {}", names.join(", "));
        for (at, line) in wrapped(&all, width - indent).into_iter().enumerate() {
            lines.push(if at == 0 { line } else { format!("{}{line}", " ".repeat(indent)) });
        }
    }
    lines.push(String::new());
    lines.push("Options of a command: toolcrib COMMAND -h".to_owned());
    lines.push("All commands with their purpose, and examples: --help".to_owned());
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
fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let stated = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    terminal.or_else(stated).unwrap_or(MAX_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH)
}

/// Breaks a text into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            *line += " ";
            *line += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
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
