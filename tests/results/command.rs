//! Contract of `toolcrib result`, through the built program.

use serde_json::{Value, json};
use toolcrib::Results;

use crate::crib::{Crib, TOOLCRIB};

fn results(crib: &Crib) -> Results {
    Results::folder(crib.path("results"))
}

#[test]
fn five_megabytes_come_out_byte_for_byte() {
    let crib = Crib::new();
    // All bytes, escape sequences among them, and no line break at the end.
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let kept = results(&crib).put("noise", "call-1", &content).unwrap();
    let output = crib.toolcrib(&["result", "show", &kept.reference]).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert!(output.stdout == content, "{} bytes", output.stdout.len());
}

#[test]
fn a_part_says_where_the_next_begins() {
    let crib = Crib::new();
    let kept = results(&crib).put("echo", "call-1", "aä日💻z".as_bytes()).unwrap();
    let show = |flags: &[&str]| crib.run(&[&["result", "show", &kept.reference], flags].concat());
    let first = show(&["--limit", "5"]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "aä"));
    assert_eq!(first.stderr, "\nhint: the result has 11 bytes; continue with `--offset 3`\n");
    let beyond = show(&["--offset", "11"]);
    assert_eq!((beyond.code, beyond.stdout.as_str()), (Some(0), ""));
    assert_eq!(beyond.stderr, "warning: offset 11 is past the end: the result has 11 bytes\n");
    let last = show(&["--offset", "6", "--limit", "1KiB"]);
    assert_eq!((last.code, last.stdout.as_str(), last.stderr.as_str()), (Some(0), "💻z", ""));
    let line = show(&["--offset", "1", "--limit", "2", "--json"]);
    let part: Value = serde_json::from_str(&line.stdout).unwrap();
    let expected = json!({
        "reference": kept.reference, "tool": "echo", "invocation": "call-1", "bytes": 11, "created": kept.created,
        "sha256": kept.sha256, "offset": 1, "next": 3, "text": "ä",
    });
    assert_eq!((part, line.stderr.as_str()), (expected, ""));
}

#[test]
fn a_list_names_the_newest_first_and_an_empty_one_is_no_failure() {
    let crib = Crib::new();
    let empty = crib.run(&["result", "list", "--json"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), "[]\n"));
    assert!(!crib.path("results").exists(), "it changes nothing");
    let older = results(&crib).put("echo", "call-1", b"older").unwrap();
    let newer = results(&crib).put("\u{1b}[2Jfail", "call-2", b"new").unwrap();
    let table = crib.run(&["result", "list"]);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].starts_with("REFERENCE ") && lines[1].starts_with(&newer.reference), "{}", table.stdout);
    assert!(lines[1].ends_with(r"  \u{1b}[2Jfail  call-2"), "{}", table.stdout);
    assert!(lines[2].starts_with(&format!("{}  5 ", older.reference)), "{}", table.stdout);
    let listed: Value = serde_json::from_str(&crib.run(&["result", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed, serde_json::to_value([&newer, &older]).unwrap());
}

#[test]
fn results_are_removed_by_name_or_all_at_once() {
    let crib = Crib::new();
    let [one, two, three] = ["1", "2", "3"].map(|text| results(&crib).put("t", "c", text.as_bytes()).unwrap());
    let gone = format!("res_{:032x}", 5);
    let ran = crib.run(&["result", "remove", &gone, &one.reference]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with(&format!("error: no result `{gone}`: ")), "{}", ran.stderr);
    assert_eq!(results(&crib).list().unwrap(), [three, two.clone()], "the other one is removed");
    let ran = crib.run(&["result", "remove", &two.reference]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = crib.run(&["result", "remove", "--all"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "removed 1 result\n"));
}

#[test]
fn what_is_not_there_is_exit_1_with_a_hint_and_wrong_use_exit_2() {
    let crib = Crib::new();
    let ran = crib.run(&["result", "show", "../tools.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = "error: no result `../tools.json`: a reference is `res_` and 32 of the digits 0-9 and a-f\n\
                    hint: `toolcrib result list` shows the stored results; each lasts at most 7 days\n";
    assert_eq!(ran.stderr, expected);
    for arguments in [&["result"][..], &["result", "show"], &["result", "remove"], &["result", "remove", "--all", "x"]]
    {
        assert_eq!(crib.run(arguments).code, Some(2), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_folder_is_a_flag_a_variable_or_in_the_state_folder() {
    let crib = Crib::new();
    let kept = Results::folder(crib.path("elsewhere")).put("t", "c", b"x").unwrap();
    assert_eq!(crib.run(&["result", "show", &kept.reference]).code, Some(1));
    assert_eq!(crib.run(&["result", "show", &kept.reference, "--set", "records.results_dir=elsewhere"]).stdout, "x");
    let kept = Results::folder(crib.path("home/.local/state/toolcrib/results")).put("t", "c", b"y").unwrap();
    let mut command = std::process::Command::new(TOOLCRIB);
    command.args(["result", "show", &kept.reference]).env_clear().env("HOME", crib.path("home"));
    assert_eq!(command.output().unwrap().stdout, b"y");
}

#[test]
fn the_help_of_each_action_teaches_with_examples() {
    let crib = Crib::new();
    for action in ["show", "list", "remove"] {
        let help = crib.run(&["result", action, "--help"]);
        assert_eq!(help.code, Some(0));
        for words in ["Examples:\n  toolcrib result ", "--set", "General:"] {
            assert!(help.stdout.contains(words), "{words} in {}", help.stdout);
        }
    }
}
