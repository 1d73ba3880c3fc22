//! `toolcrib audit show`: the log for people, and unchanged for programs.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Creates a crib with three days of calls, the last of them today.
fn crib() -> Crib {
    let crib = Crib::new();
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    for (day, tool, outcome, denied) in [
        ("2026-03-01", "fs_stat", "ok", json!([])),
        ("2026-03-01", "fs_rm", "denied", json!([{"capability": "write:/a", "flag": "--allow-write=a"}])),
        ("2026-03-02", "get_time", "ok", json!([])),
        (&today, "\u{1b}[2J\u{202e}x\ny", "trap", json!([])),
    ] {
        let record = json!({
            "ts": format!("{day}T12:30:45.678Z"), "tool": tool, "outcome": outcome, "ms": 12.34,
            "granted": ["read:work"], "denied": denied,
        });
        let file = crib.path(format!("audit/{}.log", day.replace('-', "")));
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, format!("{before}{record}\n")).unwrap();
    }
    crib
}

/// Tools of the records that these flags select.
fn tools(crib: &Crib, flags: &[&str]) -> Vec<String> {
    let ran = crib.run(&[&["audit", "show", "--json"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tool = |line: &str| serde_json::from_str::<Value>(line).unwrap()["tool"].as_str().unwrap().to_owned();
    ran.stdout.lines().map(tool).collect()
}

#[test]
fn a_table_tells_a_person_what_was_called_and_nothing_in_it_has_power() {
    let page = Page::new();
    let ran = page.run(&crib(), &["audit", "show"]);
    assert!(ran.stdout.lines().nth(2).unwrap().starts_with("2026-03-01 12:30:45  fs_rm "), "{ran:?}");
    page.matches("audit/table");
}

#[test]
fn arguments_are_shown_in_short_and_have_no_power() {
    let crib = Crib::new();
    let long = "ä".repeat(100);
    let mut text = String::new();
    for arguments in [
        json!({"json": {"path": "a\u{1b}[2J\n\u{202e}b", "n": 1}}),
        json!({"text": "line\n\u{1b}]0;x\u{7} two"}),
        json!({"text": long}),
        json!({"cut": "short", "bytes": 9000, "digest": "sha256:00"}),
        json!({"cut": long, "bytes": 9000, "digest": "sha256:00"}),
        json!({"bytes": 12, "digest": "sha256:00"}),
        json!({"bytes": 1}),
        json!({"later": "unknown"}),
        json!(["odd"]),
        Value::Null,
    ] {
        let record = json!({"ts": "2026-03-01T12:30:45.678Z", "tool": "t", "outcome": "ok", "arguments": arguments});
        text += &format!("{record}\n");
    }
    fs::write(crib.path("audit/20260301.log"), &text).unwrap();
    let shown = crib.run(&["audit", "show"]).stdout;
    assert!(shown.lines().next().unwrap().ends_with("DENIED  ARGUMENTS"), "{shown}");
    let cells: Vec<_> =
        shown.lines().skip(1).map(|line| line.split_once("-        -").unwrap().1.trim_start()).collect();
    assert_eq!(
        cells,
        [
            r#"{"path":"a\u001b[2J\n\u{202e}b","n":1}"#,
            r"line \u{1b}]0;x\u{7} two",
            &format!("{}…", "ä".repeat(59)),
            "short…",
            &format!("{}…", "ä".repeat(59)),
            "(12 bytes)",
            "(1 byte)",
            "",
            "",
            "",
        ]
    );
    assert_eq!(crib.run(&["audit", "show", "--json"]).stdout, text);
}

#[test]
fn each_filter_leaves_out_what_it_says() {
    let crib = crib();
    assert_eq!(tools(&crib, &[]).len(), 4);
    assert_eq!(tools(&crib, &["--tool", "fs_*"]), ["fs_stat", "fs_rm"]);
    assert_eq!(tools(&crib, &["--outcome", "ok"]), ["fs_stat", "get_time"]);
    assert_eq!(tools(&crib, &["--outcome", "ok", "--tool", "g*"]), ["get_time"]);
    assert_eq!(tools(&crib, &["--day", "2026-03-02"]), ["get_time"]);
    assert_eq!(tools(&crib, &["--day", "today"]).len(), 1);
    assert_eq!(tools(&crib, &["--last", "2", "--outcome", "ok", "--tool", "fs_*"]), ["fs_stat"]);
    assert_eq!(tools(&crib, &["--last", "2"])[0], "get_time");
    assert!(tools(&crib, &["--last", "0"]).is_empty());
    assert!(tools(&crib, &["--day", "2030-01-01"]).is_empty());
    for flags in [&["--tool=absent"][..], &["--tool=absent", "--json"], &["--last=0"]] {
        let ran = crib.run(&[&["audit", "show"], flags].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "no matching records\n"), "{flags:?}");
    }
}

#[test]
fn the_last_calls_are_found_behind_damage_as_among_all_calls() {
    let crib = crib();
    let file = crib.path("audit/20260302.log");
    let whole = fs::read(&file).unwrap();
    let torn = &whole[..whole.len() / 2];
    let damage = [b"\xff\0\n\n".as_slice(), &vec![b'x'; 17 << 20], b"\n", &whole, torn, b"\n", &whole, torn].concat();
    fs::write(&file, damage).unwrap();
    let all = tools(&crib, &[]);
    assert_eq!(all.len(), 5);
    for last in 0..7 {
        let expected = &all[all.len().saturating_sub(last)..];
        assert_eq!(tools(&crib, &["--last", &last.to_string()]), expected, "{last}");
    }
    assert_eq!(tools(&crib, &["--last", "1", "--tool", "fs_*"]), ["fs_rm"]);
}

#[test]
fn a_record_for_programs_is_the_line_itself() {
    let crib = crib();
    let ran = crib.run(&["audit", "show", "--json", "--day", "2026-03-01"]);
    assert_eq!(ran.stdout, fs::read_to_string(crib.path("audit/20260301.log")).unwrap());
}

#[test]
fn a_filter_that_can_match_nothing_is_wrong_use() {
    let page = Page::new();
    let crib = Crib::new();
    for flags in [["--outcome", "denyed"], ["--day", "2026-02-30"], ["--last", "-1"], ["--last", "abc"]] {
        page.run(&crib, &[&["audit", "show"][..], &flags].concat());
    }
    page.matches("audit/wrong-filter");
}
