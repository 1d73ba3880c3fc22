//! Commands beside calls: the demonstration, the audit log, rules, secrets, new tools, and the help.

use std::fs;
use std::path::Path;

use crate::crib::toolbox;

use super::{CRIB, Case, case, copy_crib, nothing, write};

const SCRIPT: &str = "../../../../../cli/demo/script.json";

pub(super) fn cases() -> Vec<Case> {
    let tools = format!("--tools={CRIB}");
    let sum = ["call", "calculate", r#"{"expression":"6*7"}"#, &tools];
    let read = ["call", "fs_read_file", r#"{"path":"a.txt"}"#, &tools];
    vec![
        Case {
            is_unordered: true,
            ..case(
                "commands",
                "the demonstration",
                desk,
                &[&["run", "--script", SCRIPT, &tools, "--allow-write=work/desk"], &["audit", "verify"]],
            )
        },
        case("commands", "the audit log", nothing, &[&sum, &read, &["audit", "verify"], &["audit", "show", "--json"]]),
        case("commands", "an audit log that was changed", changed, &[&["audit", "verify"]]),
        case("commands", "one call with its receipt", nothing, &[&[&sum[..], &["--json"]].concat()]),
        case("commands", "agent tool records of a call", nothing, &[&[&sum[..], &["--records=records"]].concat()]),
        case(
            "commands",
            "a new tool",
            nothing,
            &[&["new", "tool", "work/greet"], &["new", "tool", "work/greet"], &["new", "tool", "work/a b"]],
        ),
        case("commands", "a new Markdown tool", nothing, &[&["new", "tool", "work/notes", "--markdown"]]),
        case("commands", "a new project", nothing, &[&["init"], &["list"]]),
        case("commands", "no secrets", nothing, &[&["secret", "list"], &["secret", "remove", "TOKEN"]]),
        case("commands", "no approvals", nothing, &[&["approvals", "list"], &["approvals", "pending"]]),
        case("commands", "tests of a manifest", copy_crib, &[&["test", "crib"]]),
        case("commands", "exports", nothing, &[&["export", &tools], &["schema", &tools, "calculate"]]),
        case("commands", "completions", nothing, &[&["completions", "bash"]]),
        case("commands", "usage", nothing, &[&["--help"], &["call", "--help"], &["cal"], &["--version"]]),
    ]
}

/// Copies the desk of the demonstration; only its files are used.
fn desk(folder: &Path) {
    for name in ["desk", "safe"] {
        for entry in fs::read_dir(toolbox().join("demo").join(name)).expect("the demonstration").flatten() {
            let content = fs::read(entry.path()).expect("a file");
            write(folder, &format!("work/{name}/{}", entry.file_name().to_string_lossy()), content);
        }
    }
}

/// Copies a log of an earlier version, with a changed byte.
fn changed(folder: &Path) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/audit");
    let log = fs::read_to_string(fixture.join("20261123.log")).expect("a log");
    write(folder, "audit/20261123.log", log.replacen("get_time", "got_time", 1));
    write(folder, "audit/head", fs::read(fixture.join("head")).expect("a head"));
}
