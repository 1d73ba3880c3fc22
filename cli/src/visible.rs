//! Tests of the options that a command shows, and of those that `--set` replaces.

use clap::{ArgAction, Command, CommandFactory};
use toolcrib_agent::runs::is_permission;
use toolcrib_settings::config::Key;

use crate::help;

/// Maximum number of options that the help of a command shows.
const MAX_SHOWN: usize = 60;
/// Command with all deprecated options.
const RUN: &str = "run";

/// Options beside the permissions that a continued run never has: without trust it may do less; name servers, certificates, and
/// the ways to ask somebody grant nothing.
const GRANT_NOTHING: [&str; 5] = ["trust", "dns", "net-ca", "answers", "wait-approval"];

/// The program as its long help shows it.
fn shown() -> Command {
    let mut command = help::prepare(crate::Cli::command(), ["toolcrib", "--help"].map(Into::into));
    command.build();
    command
}

#[test]
fn no_command_shows_more_than_sixty_options() {
    let program = shown();
    let mut open: Vec<(String, &Command)> = vec![(String::new(), &program)];
    while let Some((name, command)) = open.pop() {
        let shown = command.get_arguments().filter(|option| option.get_long().is_some() && !option.is_hide_set());
        let shown: Vec<_> = shown.filter_map(|option| option.get_long()).collect();
        assert!(shown.len() <= MAX_SHOWN, "{name}: {} options: {shown:?}", shown.len());
        open.extend(command.get_subcommands().map(|below| (format!("{name} {}", below.get_name()), below)));
    }
}

#[test]
fn a_continued_run_knows_every_option_about_permissions() {
    let program = crate::Cli::command();
    for name in [RUN, "chat"] {
        let command = program.find_subcommand(name).expect("a command");
        let heading = |option: &str| {
            let found = command.get_arguments().find(|it| it.get_long() == Some(option));
            found.expect("an option").get_help_heading().map(str::to_owned)
        };
        let headings = [heading("allow-read"), heading("deny-net"), heading("ask-tool")];
        let about = command.get_arguments().filter(|it| headings.contains(&it.get_help_heading().map(str::to_owned)));
        let about: Vec<&str> = about.filter_map(|option| option.get_long()).collect();
        let is_known = |option: &&&str| is_permission(option) || GRANT_NOTHING.contains(*option);
        let unknown: Vec<_> = about.iter().filter(|option| !is_known(option)).collect();
        assert!(about.len() > 25 && unknown.is_empty(), "{name}: {unknown:?} of {about:?}");
    }
}

#[test]
fn options_without_effect_are_not_shown() {
    let program = shown();
    let is_shown = |command: &str, option: &str| {
        let command = program.find_subcommand(command).expect("a command");
        let option = command.get_arguments().find(|it| it.get_long() == Some(option)).expect("an option");
        !option.is_hide_set()
    };
    for command in ["list", "schema", "inspect", "doctor"] {
        assert!(!is_shown(command, "max-memory"), "{command}");
    }
    assert!(is_shown("call", "max-memory"));
    assert!(is_shown("list", "allow-read") && !is_shown("doctor", "allow-read") && is_shown("doctor", "tools"));
}

#[test]
fn each_deprecated_option_is_known_by_its_name_and_belongs_to_one_key() {
    let program = crate::Cli::command();
    let run = program.find_subcommand(RUN).expect("a command");
    let mut seen = Vec::new();
    for key in Key::all_keys().filter(|key| key.replaces_options()) {
        for option in key.options() {
            let defined = run.get_arguments().find(|it| it.get_long() == Some(option));
            let defined = defined.unwrap_or_else(|| panic!("{key}: --{option}"));
            // The warnings find an option by its identifier.
            assert_eq!(defined.get_id().as_str().replace('_', "-"), option, "{key}");
            let takes_value = !matches!(defined.get_action(), ArgAction::SetTrue);
            assert_eq!(takes_value, key.kind() != "true | false", "{key}: --{option}");
            assert!(!seen.contains(&option), "{key}: --{option}");
            seen.push(option);
        }
    }
}
