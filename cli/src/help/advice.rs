//! Advice about an unknown command or option: the command for a word of other programs, the nearest name if it is near, and
//! otherwise nothing.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use toolcrib_base::suggestion::nearest;

/// Words of a tip to pass an unknown option as a value.
const AS_A_VALUE: &str = "as a value, use";

/// Words of other programs below a command, each with the line that does the same here. The first command is empty for the program
/// itself.
const COMMANDS: &[(&str, &[&str], &str)] = &[
    ("", &["serve", "server", "daemon"], "mcp"),
    ("", &["token", "tokens"], "mcp token"),
    ("", &["start", "exec", "agent", "ask", "prompt"], "run"),
    ("", &["repl", "interactive", "shell"], "chat"),
    ("", &["tools", "tool"], "list"),
    ("", &["ps", "history", "sessions", "session"], "runs list"),
    ("", &["resume", "continue"], "run --resume"),
    ("", &["log", "logs"], "audit show"),
    ("", &["add"], "install"),
    ("", &["uninstall", "rm", "delete"], "remove"),
    ("", &["upgrade"], "update"),
    ("", &["search", "find"], "install --list"),
    ("", &["publish"], "push"),
    ("", &["rollback", "revert", "restore"], "undo"),
    ("", &["diff"], "stage diff"),
    ("", &["approve", "allow", "permissions"], "approvals"),
    ("", &["settings", "set"], "config"),
    ("", &["check", "lint"], "validate"),
    ("", &["info", "show"], "inspect"),
    ("", &["ui", "web", "dashboard"], "console"),
    ("config", &["list", "show", "view"], "config explain"),
    ("config", &["reset", "remove", "delete"], "config unset"),
    ("audit", &["list", "log", "tail"], "audit show"),
    ("audit", &["check"], "audit verify"),
    ("mcp", &["serve", "start", "run"], "mcp"),
    ("mcp", &["add", "install"], "mcp config"),
    ("mcp", &["create"], "mcp token new"),
    ("mcp", &["delete", "remove"], "mcp token revoke"),
    ("runs", &["delete", "rm"], "runs remove"),
    ("runs", &["resume", "continue"], "run --resume"),
    ("cache", &["clean"], "cache clear"),
    ("cache", &["purge", "gc"], "cache prune"),
    ("secret", &["add", "create", "new"], "secret set"),
    ("stage", &["apply", "accept"], "stage commit"),
    ("stage", &["discard", "reject", "reset"], "stage drop"),
    ("stage", &["status"], "stage list"),
    ("approvals", &["approve", "accept"], "approvals allow"),
    ("approvals", &["reject"], "approvals deny"),
    ("key", &["create", "generate"], "key new"),
    ("bundle", &["create", "build"], "bundle pack"),
];

/// Options of other programs that allow everything.
const ALLOW_EVERYTHING: [&str; 7] = [
    "--yolo",
    "--dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
    "--allow-all",
    "--allow-all-tools",
    "--auto-approve",
    "--full-auto",
];
/// Tip in their place.
const ALLOW_SOME: &str = "no option allows everything: name what tools may use, such as '--allow-write=DIR', and the calls \
                          that need no question, such as '--allow-tool=fs_*'";

/// Replaces the advice of an error about an unknown command or option. `first` is the first argument of the program.
pub(crate) fn advise(mut error: Error, first: Option<&str>) -> Error {
    if first == Some("call") {
        drop_tips_about_values(&mut error);
    }
    if let Some(name) = text(&error, ContextKind::InvalidSubcommand) {
        let suggested = names(&error, ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedSubcommand);
        let (is_first, command) = match first {
            Some(first) if first == name => (true, ""),
            first => (false, first.unwrap_or_default()),
        };
        let meant = COMMANDS.iter().find(|(of, words, _)| *of == command && words.contains(&name.as_str()));
        let near = near(&name, &suggested);
        let tip = match (meant, near) {
            _ if is_first && name == "version" => Some("the option is '--version'".to_owned()),
            (Some((.., line)), _) => Some(format!("the command is 'toolcrib {line}'")),
            (None, Some(near)) => Some(format!("a similar subcommand exists: '{near}'")),
            (None, None) => is_first.then(|| format!("to call a tool of this name, use 'toolcrib call {name}'")),
        };
        add(&mut error, tip);
    } else if let Some(name) =
        text(&error, ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)
    {
        let suggested = names(&error, ContextKind::SuggestedArg);
        if ALLOW_EVERYTHING.contains(&name.as_str()) {
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
            add(&mut error, Some(ALLOW_SOME.to_owned()));
        } else if near(&name, &suggested).is_none() {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    error
}

/// Returns the suggestion that is near enough to an unknown name, or that one of them begins with as a whole word.
fn near(name: &str, suggested: &[String]) -> Option<String> {
    let name = name.trim_start_matches('-');
    let words = || suggested.iter().map(|suggested| suggested.trim_start_matches('-'));
    let begins = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'));
    let part = || words().find(|word| begins(name, word) || begins(word, name));
    nearest(name, words()).or_else(part).map(str::to_owned)
}

/// Removes tips to pass an option as a value: arguments of a tool are JSON, and after `--` they would be those of a program.
fn drop_tips_about_values(error: &mut Error) {
    let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else { return };
    let others: Vec<StyledStr> = tips.iter().filter(|tip| !tip.to_string().contains(AS_A_VALUE)).cloned().collect();
    error.remove(ContextKind::Suggested);
    if !others.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(others));
    }
}

fn add(error: &mut Error, tip: Option<String>) {
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn names(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_of_the_table_exists_and_no_word_of_it_is_one() {
        let program = crate::Cli::command();
        for (of, words, line) in COMMANDS {
            let below = |command: &clap::Command, name: &str| command.find_subcommand(name).cloned();
            let mut at = program.clone();
            for word in line.split(' ').filter(|word| !word.starts_with('-')) {
                at = below(&at, word).unwrap_or_else(|| panic!("{line}"));
            }
            if let Some(option) = line.split("--").nth(1) {
                assert!(at.get_arguments().any(|argument| argument.get_long() == Some(option)), "{line}");
            }
            let parent = if of.is_empty() { program.clone() } else { below(&program, of).expect(of) };
            for word in *words {
                assert!(below(&parent, word).is_none(), "{of} {word}");
            }
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let near =
            |name: &str, suggested: &[&str]| near(name, &suggested.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(near("lst", &["test", "list"]).as_deref(), Some("list"));
        assert_eq!(near("--model-name", &["--model"]).as_deref(), Some("model"));
        assert_eq!(near("serve", &["remove", "secret"]), None);
        assert_eq!(near("--timezone", &["--timeout"]), None);
    }
}
