//! Help: a short screen with `-h`, everything with examples with `--help`, and the shape of `call` in its errors.

use crate::crib::{Crib, Ran};
use crate::screen::{Page, snapshots};

use super::COMMANDS;

/// Maximum lines of `-h`: the height of a small terminal.
const MAX_LINES: usize = 24;
/// Maximum lines of `--help`.
const MAX_LONG_LINES: usize = 200;
/// Widths of terminals, in columns.
const WIDTHS: [usize; 2] = [80, 100];
/// Subcommands with a help of their own.
const SUBCOMMANDS: [[&str; 2]; 25] = [
    ["runs", "list"],
    ["runs", "show"],
    ["runs", "export"],
    ["runs", "remove"],
    ["new", "tool"],
    ["new", "hook"],
    ["key", "new"],
    ["mcp", "config"],
    ["mcp", "token"],
    ["audit", "show"],
    ["audit", "verify"],
    ["result", "show"],
    ["result", "list"],
    ["result", "remove"],
    ["approvals", "pending"],
    ["approvals", "allow"],
    ["approvals", "deny"],
    ["approvals", "list"],
    ["approvals", "remove"],
    ["secret", "set"],
    ["secret", "list"],
    ["secret", "remove"],
    ["cache", "list"],
    ["cache", "prune"],
    ["cache", "clear"],
];

/// Widths from a narrow terminal to a wide one.
const ALL_WIDTHS: [usize; 3] = [60, 80, 200];

/// Every command with a help, found in the helps above it.
fn all_commands(crib: &Crib) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while let Some(command) = found.get(at).cloned() {
        at += 1;
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = crib.run(&arguments).stdout;
        // Commands of the program are in groups, others under one heading.
        let is_heading =
            |line: &str| line.ends_with(':') && !line.starts_with(' ') && line != "Options:" && line != "Examples:";
        let lists = |line: &str| match command.is_empty() {
            true => is_heading(line),
            false => line == "Commands:",
        };
        let mut listed = false;
        for line in help.lines() {
            if !line.starts_with(' ') && !line.is_empty() {
                listed = lists(line);
                continue;
            }
            let name = line.strip_prefix("  ").filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
            let name = name.and_then(|line| line.split_whitespace().next()).filter(|name| listed && *name != "help");
            found.extend(name.map(|name| command.iter().cloned().chain([name.to_owned()]).collect()));
        }
    }
    found
}

#[test]
fn every_short_help_fits_a_small_terminal_at_every_width() {
    let crib = Crib::new();
    let all = all_commands(&crib);
    assert!(all.len() > COMMANDS.len() + SUBCOMMANDS.len(), "{all:?}");
    for command in COMMANDS {
        assert!(all.contains(&vec![command.to_owned()]), "{command}");
    }
    let mut wrong = Vec::new();
    for command in &all {
        for width in ALL_WIDTHS {
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["-h"]).collect();
            let ran = Ran::from(crib.toolcrib(&arguments).env("COLUMNS", width.to_string()).output().unwrap());
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command:?}");
            let permissions = ["--allow-read", "--allow-write", "--allow-net", "--ask "];
            if let (["run"] | ["chat"], Some(missing)) =
                (&arguments[..arguments.len() - 1], permissions.iter().find(|name| !ran.stdout.contains(**name)))
            {
                wrong.push(format!("{command:?} at {width}: no `{missing}`"));
            }
            let lines = ran.stdout.lines().count();
            // A usage line is not broken.
            let wrapped = ran.stdout.lines().filter(|line| !line.starts_with("Usage: "));
            let widest = wrapped.map(|line| line.chars().count()).max().unwrap_or_default();
            if lines > MAX_LINES || widest > width {
                wrong.push(format!("{command:?} at {width}: {lines} lines, {widest} columns"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_has_its_help_in_a_snapshot() {
    let crib = Crib::new();
    let mut names = Vec::new();
    for command in all_commands(&crib) {
        let page = Page::new();
        for help in ["-h", "--help"] {
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain([help]).collect();
            // No variable has a value, which the help could show.
            let mut program = crib.toolcrib(&arguments);
            let ran = page.command(program.env_clear().env("HOME", crib.path("home")));
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command:?}");
            assert!(ran.stdout.lines().count() < MAX_LONG_LINES, "{command:?}: {}", ran.stdout);
        }
        let name = if command.is_empty() { "toolcrib".to_owned() } else { command.join("-") };
        page.matches(&format!("help/{name}"));
        names.push(format!("{name}.snap"));
    }
    names.sort();
    let files = std::fs::read_dir(snapshots().join("help")).expect("the snapshots of the help");
    let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.retain(|name| name.ends_with(".snap"));
    files.sort();
    assert_eq!(files, names, "every snapshot belongs to a command");
}

/// Long help of every command, at a width.
fn long_help(crib: &Crib, width: usize) -> Vec<String> {
    let commands = COMMANDS.iter().chain(&["inspect", "export"]).map(|command| vec![*command]);
    let commands = commands.chain(SUBCOMMANDS.iter().map(|command| command.to_vec())).chain([vec![]]);
    commands
        .map(|command| {
            let mut program = crib.toolcrib(&command);
            let ran = Ran::from(program.arg("--help").env("COLUMNS", width.to_string()).output().unwrap());
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command:?}");
            ran.stdout
        })
        .collect()
}

/// Lines of the examples of a help text.
fn examples(help: &str) -> Vec<&str> {
    help.lines().skip_while(|line| *line != "Examples:").take_while(|line| !line.is_empty()).collect()
}

#[test]
fn short_help_fits_a_screen_and_points_to_the_long_one() {
    let crib = Crib::new();
    for command in COMMANDS {
        let short = crib.run(&[command, "-h"]);
        assert_eq!((short.code, short.stderr.as_str()), (Some(0), ""), "{command}");
        assert!(short.stdout.lines().count() <= MAX_LINES, "{command}: {}", short.stdout);
        assert!(short.stdout.contains("--help"), "{command}: {}", short.stdout);
        assert!(!short.stdout.contains("Examples:"), "{command}: {}", short.stdout);
    }
}

#[test]
fn every_command_has_worked_examples() {
    let crib = Crib::new();
    for command in COMMANDS {
        let help = crib.run(&[command, "--help"]).stdout;
        let example = format!("toolcrib {command}");
        let examples = help.split_once("Examples:").unwrap_or_else(|| panic!("{command}: {help}")).1;
        assert!(examples.lines().filter(|line| line.contains(&example)).count() >= 2, "{command}: {help}");
    }
}

#[test]
fn help_breaks_lines_only_where_they_are_full_and_never_in_an_example() {
    let crib = Crib::new();
    let [narrow, wide] = WIDTHS.map(|width| long_help(&crib, width));
    for (narrow, wide) in narrow.iter().zip(&wide) {
        assert_eq!(examples(narrow), examples(wide));
        assert_eq!(examples(narrow).len() > 1, narrow.contains("\nExamples:"), "{narrow}");
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (width, texts) in WIDTHS.into_iter().zip([narrow, wide]) {
        for help in texts {
            let examples = examples(&help);
            let lines: Vec<&str> = help.lines().filter(|line| !examples.contains(line)).collect();
            for line in help.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            for pair in lines.windows(2) {
                let [line, next] = [pair[0], pair[1]];
                let word = next.split_whitespace().next().unwrap_or_default();
                // A list has columns, separated by several spaces.
                let is_continuation = indent(line) == indent(next)
                    && !line.is_empty()
                    && word.starts_with(char::is_lowercase)
                    && !next.trim_start().contains("  ");
                let fits = line.chars().count() + 1 + word.chars().count() <= width;
                assert!(!(is_continuation && fits), "broken early at {width}: {line}\n{next}");
            }
        }
    }
}

#[test]
fn a_wrong_use_of_call_shows_its_shape() {
    let page = Page::new();
    let crib = Crib::new();
    for wrong in [
        &["call"][..],
        &["call", "get_time", "--timezone=UTC"],
        &["call", "get_time", "{}", "more"],
        &["call", "{\"timezone\": \"UTC\"}", "get_time"],
    ] {
        page.run(&crib, wrong);
    }
    page.matches("usage/call");
}

#[test]
fn a_table_in_a_pipe_is_whole_whatever_the_width_of_the_terminal_is() {
    let crib = Crib::with_guests(&["echo"]);
    let narrow = Ran::from(crib.toolcrib(&["list"]).env("COLUMNS", "12").output().unwrap());
    assert_eq!((narrow.code, narrow.stdout), (Some(0), crib.run(&["list"]).stdout));
}
