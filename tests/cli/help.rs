//! Help: a short screen with `-h`, everything with examples with `--help`, and the shape of `call` in its errors.

use crate::crib::Crib;

use super::COMMANDS;

/// Maximum lines of `-h`.
const MAX_LINES: usize = 70;

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
    let short = crib.run(&["run", "-h"]).stdout;
    for option in ["--model", "--tools", "--allow-read", "--allow-write", "--allow-net"] {
        assert!(short.contains(option), "{option} in {short}");
    }
    let long = crib.run(&["run", "--help"]).stdout;
    for option in ["--deny-read", "--max-memory", "--audit-dir", "--allow-tool", "--http-retries", "--dry-run"] {
        assert!(!short.contains(option) && long.contains(option), "{option} only in the long help");
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
fn a_wrong_use_of_call_shows_its_shape() {
    let crib = Crib::new();
    for wrong in [&["call"][..], &["call", "get_time", "--timezone=UTC"], &["call", "get_time", "{}", "more"]] {
        let ran = crib.run(wrong);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(ran.stderr.contains("Usage: toolcrib call [OPTIONS] TOOL [ARGUMENTS]\n"), "{wrong:?}: {}", ran.stderr);
        for words in ["--name=value", r#"'{"path":"notes.md"}'"#] {
            assert!(ran.stderr.contains(words), "{wrong:?}: {}", ran.stderr);
        }
    }
}
