//! Attacks on granted folders: escapes, traps in them, filling them, and information about the host.

mod listing;
mod planted;
mod quota;
pub(crate) mod race;
mod settling;
mod single;
mod swapped;
mod traces;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::crib::Crib;

/// Creates a crib with these guests and one that proves that the next call works, a folder `work`, and a secret outside
/// it.
fn crib(guests: &[&str]) -> Crib {
    let crib = Crib::with_guests(&[guests, &["echo"]].concat());
    fs::write(crib.path("secret"), "canary").unwrap();
    fs::write(crib.path("work/note"), "text").unwrap();
    fs::create_dir(crib.path("work/folder")).unwrap();
    crib
}

/// Calls a guest; asserts its outcome, its single record, and that the next call works.
fn ends(crib: &Crib, guest: &str, arguments: Value, flags: &[&str], outcome: &str) -> Value {
    let before = crib.records().len();
    let line = crib.call(guest, &arguments, flags);
    assert_eq!(line["receipt"]["outcome"], outcome, "{arguments}: {line}");
    assert_eq!(crib.outcome("echo", &json!({}), &[]), "ok");
    let records = crib.records();
    let outcomes: Vec<_> = records[before..].iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, [outcome, "ok"], "{arguments}");
    line
}

/// One raw operation, with the folder `work` granted for writing: it is refused, and nothing outside changes.
fn refused(crib: &Crib, op: &str, path: &str, to: &str) -> Value {
    let arguments = json!({"op": op, "path": path, "to": to, "text": "x"});
    let line = ends(crib, "file_io", arguments, &["--allow-write=work", "--set=limits.tool_timeout=10s"], "ok");
    assert!(line["result"]["error"].is_string(), "{op} {path} {to}: {line}");
    assert_eq!(fs::read_to_string(crib.path("secret")).unwrap(), "canary", "{op} {path} {to}");
    line
}

/// Capabilities that a receipt names as denied.
fn denied(line: &Value) -> Vec<&str> {
    let denials = line["receipt"]["denied"].as_array().unwrap().iter();
    denials.map(|denial| denial["capability"].as_str().unwrap()).collect()
}

#[test]
fn a_name_that_leads_out_is_denied_and_the_receipt_names_it() {
    let crib = crib(&["file_io"]);
    symlink("..", crib.path("work/up")).unwrap();
    symlink("../secret", crib.path("work/link")).unwrap();
    symlink("link", crib.path("work/chain")).unwrap();
    let absolute = crib.path("secret").display().to_string();
    for path in
        ["../secret", "..//secret", "./folder/../../secret", "up/secret", "up//./secret", "link", "chain", &absolute]
    {
        let line = refused(&crib, "read", path, "");
        assert_eq!(denied(&line), [format!("read:{path}")], "{line}");
        let line = refused(&crib, "set_times", path, "");
        assert_eq!(denied(&line), [format!("write:{path}")], "{line}");
    }
    for path in ["note/", "note//", "note/.", "absent/../note", "link/", "chain/"] {
        refused(&crib, "read", path, "");
    }
    // A path that loops inside the folder stays inside.
    for path in ["folder/../note", ".//note", "folder/./../note"] {
        let line = ends(&crib, "file_io", json!({"op": "read", "path": path}), &["--allow-read=work"], "ok");
        assert_eq!(line["result"], json!({"ok": "text"}), "{path}");
    }
}

#[test]
fn a_loop_of_links_and_a_link_without_end_are_refused() {
    let crib = crib(&["file_io"]);
    symlink("two", crib.path("work/one")).unwrap();
    symlink("one", crib.path("work/two")).unwrap();
    symlink("self/x", crib.path("work/self")).unwrap();
    for link in 0..60 {
        symlink(format!("chain-{}", link + 1), crib.path(format!("work/chain-{link}"))).unwrap();
    }
    symlink("note", crib.path("work/chain-60")).unwrap();
    for op in ["read", "write", "list", "set_times"] {
        for path in ["one", "self", "self/y", "chain-0"] {
            refused(&crib, op, path, "");
        }
    }
    let short = ends(&crib, "file_io", json!({"op": "read", "path": "chain-55"}), &["--allow-read=work"], "ok");
    assert_eq!(short["result"], json!({"ok": "text"}), "a few links are as good as none");
    refused(&crib, "open_link", "chain-60", "");
}

#[test]
fn no_link_is_moved_or_followed_out_by_a_trailing_slash() {
    let crib = crib(&["file_io"]);
    fs::create_dir(crib.path("outside")).unwrap();
    fs::write(crib.path("outside/kept"), "").unwrap();
    symlink("../outside", crib.path("work/out")).unwrap();
    symlink("folder", crib.path("work/in")).unwrap();
    for (op, path, to) in [
        ("rename", "out/", "moved"),
        ("rename", "out//", "moved"),
        ("rename", "out/.", "moved"),
        ("rename", "out/kept", "moved"),
        ("rename", "note", "out/"),
        ("rename", "folder", "out/"),
        ("rename", "folder", "out/moved"),
        ("hard_link", "out/kept", "moved"),
        ("hard_link", "note", "out/moved"),
        ("remove_folder", "out/", ""),
        ("remove", "out/kept", ""),
        ("remove", "out/", ""),
        ("mkdir", "out/made", ""),
        ("symlink", "out/made", "note"),
        ("open_new", "out/made", ""),
        ("list", "out/", ""),
    ] {
        refused(&crib, op, path, to);
    }
    assert!(crib.path("outside/kept").exists() && !crib.path("work/moved").exists());
    assert_eq!(fs::read_dir(crib.path("outside")).unwrap().count(), 1);
    assert!(fs::symlink_metadata(crib.path("work/out")).unwrap().is_symlink());
}

#[test]
fn nothing_is_linked_or_moved_between_a_read_grant_and_a_writable_one() {
    let crib = crib(&["file_io"]);
    fs::create_dir(crib.path("other")).unwrap();
    fs::write(crib.path("other/own"), "own").unwrap();
    for (op, path, to, from, into) in [
        ("hard_link", "note", "note", "/work", "/other"),
        ("rename", "note", "note", "/work", "/other"),
        ("rename", "folder", "folder", "/work", "/other"),
        ("rename", "own", "own", "/other", "/work"),
        ("hard_link", "own", "own", "/other", "/work"),
        ("rename", "own", "note", "/other", "/work"),
    ] {
        let arguments = json!({"op": op, "path": path, "to": to, "root": from, "to_root": into});
        let line = ends(&crib, "file_io", arguments, &["--allow-read=work", "--allow-write=other"], "ok");
        assert_eq!(line["result"]["error"], "not-permitted", "{op} {path}: {line}");
        assert_eq!(denied(&line), [format!("write:{to}")], "{line}");
    }
    assert_eq!(fs::read_to_string(crib.path("work/note")).unwrap(), "text");
    assert_eq!(fs::read_dir(crib.path("other")).unwrap().count(), 1);
}

#[test]
fn a_read_grant_is_truncated_and_stretched_by_nobody() {
    let crib = crib(&["file_io"]);
    for op in ["truncate", "set_size", "open_for_write", "append", "write", "write_far", "stream_far", "set_times"] {
        let arguments = json!({"op": op, "path": "note", "text": "x"});
        let line = ends(&crib, "file_io", arguments, &["--allow-read=work"], "ok");
        assert_eq!(line["result"]["error"], "not-permitted", "{op}: {line}");
        assert_eq!(denied(&line), ["write:note"], "{op}: {line}");
    }
    assert_eq!(fs::read_to_string(crib.path("work/note")).unwrap(), "text");
}

#[test]
fn what_is_no_file_is_never_opened_and_keeps_nobody_waiting() {
    let crib = crib(&["file_io"]);
    let _listens = UnixListener::bind(crib.path("work/socket")).unwrap();
    let mut special = vec!["socket"];
    let made = |args: &[&str]| {
        Command::new(args[0]).args(&args[1..]).current_dir(crib.path("work")).status().is_ok_and(|it| it.success())
    };
    if made(&["mkfifo", "fifo"]) {
        special.push("fifo");
    } else {
        eprintln!("skipped: no mkfifo here");
    }
    // Only a superuser may create a device.
    if made(&["mknod", "device", "c", "1", "5"]) {
        special.push("device");
    } else {
        eprintln!("skipped: no right to make a device here");
    }
    for path in special {
        symlink(path, crib.path("work/leads_there")).unwrap();
        for path in [path, "leads_there"] {
            for op in ["open", "read", "write", "append", "truncate", "set_size", "set_times", "open_for_write"] {
                let line = refused(&crib, op, path, "");
                assert_eq!(line["result"]["error"], "not-permitted", "{op} {path}: {line}");
                assert_eq!(denied(&line).len(), 1, "{op} {path}: {line}");
            }
            for op in ["list", "open_for_change"] {
                assert_eq!(refused(&crib, op, path, "")["result"]["error"], "not-directory", "{op} {path}");
            }
            assert_eq!(refused(&crib, "open_new", path, "")["result"]["error"], "not-permitted", "{path}");
        }
        fs::remove_file(crib.path("work/leads_there")).unwrap();
    }
}

#[test]
fn the_windows_into_the_host_are_not_reached_through_a_link() {
    let crib = crib(&["file_io"]);
    for (name, target) in [
        ("environment", "/proc/self/environ"),
        ("descriptor", "/proc/self/fd/0"),
        ("root", "/proc/self/root"),
        ("null", "/dev/null"),
        ("climbs", "../../../../../../../../../proc/self/environ"),
    ] {
        symlink(target, crib.path("work").join(name)).unwrap();
        for op in ["read", "write", "list", "set_times"] {
            let line = refused(&crib, op, name, "");
            assert_eq!(line["result"]["error"], "not-permitted", "{op} {name}: {line}");
        }
    }
    for path in ["/proc/self/environ", "/dev/zero", "/sys", "/etc/passwd"] {
        refused(&crib, "read", path, "");
    }
}

/// On Windows the engine refuses them; elsewhere they are ordinary names.
#[test]
fn a_device_name_of_windows_is_a_plain_name_here() {
    let crib = crib(&["file_io"]);
    for name in ["CON", "NUL", "COM1", "aux.txt", "prn", "a:b", "back\\slash"] {
        let arguments = json!({"op": "write", "path": name, "text": "plain"});
        ends(&crib, "file_io", arguments, &["--allow-write=work"], "ok");
        assert_eq!(fs::read_to_string(crib.path("work").join(name)).unwrap(), "plain", "{name}");
    }
}

#[test]
fn a_flood_of_open_files_leaves_the_host_its_own() {
    let crib = crib(&["open_many"]);
    // With 64 descriptors in total, a guest gets at most half, and the call is still recorded.
    let call = "ulimit -Sn 64 && ulimit -Hn 64 && exec \"$0\" \"$@\"";
    let toolcrib = crib.toolcrib(&["call", "open_many", r#"{"path": "note"}"#, "--json", "--allow-read=work"]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(call).arg(toolcrib.get_program()).args(toolcrib.get_args());
    command.current_dir(crib.path(".")).env_clear();
    command.envs(toolcrib.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.output().unwrap();
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    let opened = line["result"]["opened"].as_u64().unwrap();
    assert!((8..=32).contains(&opened), "{line}");
    assert_eq!(crib.records().len(), 1);
    assert_eq!(crib.outcome("open_many", &json!({"path": "note"}), &["--allow-read=work"]), "handles");
}
