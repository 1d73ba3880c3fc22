//! Secret store: written completely or not at all, for the owner alone, and never shown. Problems of a file are
//! reported, and the file stays unchanged.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::echo::found;
use super::{CANARY, keep};
use crate::crib::{Crib, Ran, TOOLCRIB};
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

const FILE: &str = "secrets/secrets.enc";

fn names(crib: &Crib) -> Vec<String> {
    let ran = crib.run(&["secret", "list", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let kept: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    kept.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// The same with a passphrase.
fn with_passphrase(crib: &Crib, words: &str, args: &[&str], input: &str) -> Ran {
    let mut command = crib.toolcrib(args);
    command.env("TOOLCRIB_SECRETS_PASSPHRASE", words);
    Ran::with_input(&mut command, input)
}

#[test]
fn what_is_kept_is_listed_without_its_value_and_can_be_removed() {
    let page = Page::new();
    let crib = Crib::new();
    let ran = keep(&crib, "github", &format!("{CANARY}\n"));
    page.show(&ran);
    assert!(found(ran.stderr.as_bytes(), CANARY).is_none());
    assert_eq!(keep(&crib, "a-1_b", "another value").code, Some(0));
    page.run(&crib, &["secret", "list"]);
    assert_eq!(names(&crib), ["a-1_b", "github"]);
    for path in [FILE, "secrets/secrets.enc.key", "secrets/secrets.enc.lock"] {
        assert_eq!(mode(&crib.path(path)), 0o600, "{path}");
        assert_eq!(found(&fs::read(crib.path(path)).unwrap(), CANARY), None, "{path}");
    }
    assert_eq!(mode(&crib.path("secrets")), 0o700);
    page.run(&crib, &["secret", "remove", "github", "absent"]);
    assert_eq!(names(&crib).len(), 2);
    page.run(&crib, &["secret", "remove", "github"]);
    assert_eq!(names(&crib), ["a-1_b"]);
    page.matches("secret/list");
}

#[test]
fn a_value_that_no_request_can_carry_or_no_scan_can_find_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    for value in [
        "short",
        "",
        "two\nlines",
        "tab\tinside",
        "aaaaaaaaaaaa",
        " begins with a space",
        &"x1".repeat(1025),
        &"x1".repeat(70_000),
    ] {
        page.note(format!("the value {:?}", value.chars().take(20).collect::<String>()));
        let ran = keep(&crib, "name", value);
        page.show(&ran);
        assert!(value.is_empty() || !ran.stderr.contains(value), "{ran:?}");
    }
    for name in ["Github", "-a", "a b", "../a", "", "a/b", &"a".repeat(65)] {
        page.show(&keep(&crib, name, "a value long enough"));
    }
    page.note("a value is never an argument");
    page.run(&crib, &["secret", "set", "name", CANARY]);
    assert!(!crib.path("secrets").exists(), "nothing was made for any of them");
    page.matches("secret/refused");
}

#[test]
fn a_person_types_a_value_unseen() {
    let crib = Crib::new();
    let mut terminal = Terminal::start(crib.toolcrib(&["secret", "set", "github"]));
    terminal.until("value of `github` (not shown): ");
    terminal.types(&format!("{CANARY}\n"));
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.terminal.contains("is stored in") && !left.terminal.contains("canary~7f"), "{left:?}");
    assert_eq!(names(&crib), ["github"]);
    let mut terminal = Terminal::start(crib.toolcrib(&["secret", "set", "other"]));
    terminal.until("(not shown): ");
    terminal.types("\u{3}");
    assert_eq!(terminal.end().code, Some(130));
    assert_eq!(names(&crib), ["github"]);
}

#[test]
fn a_passphrase_locks_the_file_and_no_key_lies_beside_it() {
    let page = Page::new();
    let crib = Crib::new();
    keep(&crib, "first", CANARY);
    let ran = with_passphrase(&crib, "correct horse", &["secret", "set", "second"], "a second value");
    page.show(&ran);
    assert!(!crib.path("secrets/secrets.enc.key").exists(), "the key of before opens nothing any more");
    let before = fs::read(crib.path(FILE)).unwrap();
    page.run(&crib, &["secret", "list"]);
    for words in ["wrong horse", "short"] {
        for args in [&["secret", "list"][..], &["secret", "set", "third"], &["secret", "remove", "first"]] {
            page.show(&with_passphrase(&crib, words, args, "a third value"));
        }
    }
    assert_eq!(fs::read(crib.path(FILE)).unwrap(), before, "what could not be opened was not changed");
    let ran = with_passphrase(&crib, "correct horse", &["secret", "list", "--json"], "");
    page.show(&ran);
    page.matches("secret/passphrase");
}

#[test]
fn a_file_that_is_damaged_or_foreign_is_told_and_stays() {
    let page = Page::new();
    let crib = Crib::new();
    keep(&crib, "github", CANARY);
    let whole = fs::read(crib.path(FILE)).unwrap();
    let key = fs::read(crib.path("secrets/secrets.enc.key")).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(crib.path(FILE), bytes).unwrap();
        page.note(what);
        for args in [&["secret", "list"][..], &["secret", "remove", "github"]] {
            page.run(&crib, args);
        }
        page.show(&keep(&crib, "other", "another value"));
        assert_eq!(fs::read(crib.path(FILE)).unwrap(), bytes, "{what}: it stays as it is");
    };
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    refused(b"", "an empty file");
    refused(b"{\"secrets\":[]}", "another file");
    refused(&whole[..30], "a part of the head");
    refused(&whole[..whole.len() - 1], "without the last byte");
    refused(&changed(16), "another version");
    refused(&changed(40), "another byte of the head");
    refused(&changed(whole.len() - 1), "another last byte");
    fs::write(crib.path("secrets/secrets.enc.key"), &key[..31]).unwrap();
    refused(&whole, "a key file without its last byte");
    fs::write(crib.path("secrets/secrets.enc.key"), [7; 32]).unwrap();
    refused(&whole, "another key");
    fs::remove_file(crib.path("secrets/secrets.enc.key")).unwrap();
    refused(&whole, "no key file");
    fs::write(crib.path("secrets/secrets.enc.key"), &key).unwrap();
    fs::set_permissions(crib.path("secrets/secrets.enc.key"), Permissions::from_mode(0o600)).unwrap();
    assert_eq!(names(&crib), ["github"]);
    page.matches("secret/damaged");
}

#[test]
fn what_others_may_read_or_put_in_its_place_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    keep(&crib, "github", CANARY);
    let refused = |what: &str| {
        page.note(what);
        page.run(&crib, &["secret", "list"]);
        assert_ne!(keep(&crib, "other", "another value").code, Some(0), "{what}");
    };
    for path in [FILE, "secrets/secrets.enc.key"] {
        for mode in [0o644, 0o640, 0o622] {
            fs::set_permissions(crib.path(path), Permissions::from_mode(mode)).unwrap();
            refused(&format!("{path} with the mode {mode:o}"));
        }
        fs::set_permissions(crib.path(path), Permissions::from_mode(0o600)).unwrap();
        fs::rename(crib.path(path), crib.path("elsewhere")).unwrap();
        symlink(crib.path("elsewhere"), crib.path(path)).unwrap();
        refused(&format!("{path} as a link"));
        fs::remove_file(crib.path(path)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, crib.path(path), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        refused(&format!("{path} as a pipe"));
        fs::remove_file(crib.path(path)).unwrap();
        fs::rename(crib.path("elsewhere"), crib.path(path)).unwrap();
    }
    fs::set_permissions(crib.path("secrets"), Permissions::from_mode(0o777)).unwrap();
    let ran = keep(&crib, "other", "another value");
    page.show(&ran);
    fs::set_permissions(crib.path("secrets"), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(names(&crib), ["github"]);
    page.matches("secret/readable");
}

#[test]
fn a_program_killed_while_it_writes_leaves_the_old_or_the_new() {
    let crib = Crib::new();
    keep(&crib, "kept", CANARY);
    let mut random = 0x2545_f491_u64;
    for round in 0..30 {
        let mut command = crib.toolcrib(&["secret", "set", &format!("n{round}")]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a value of some length").unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros(random >> 33 & 0x3fff));
        child.kill().unwrap();
        child.wait().unwrap();
        let names = names(&crib);
        assert!(names.contains(&"kept".to_owned()), "after round {round}: {names:?}");
    }
    assert_eq!(keep(&crib, "after", "another value").code, Some(0), "what a killed one left stands in nobody's way");
    let left: Vec<_> = fs::read_dir(crib.path("secrets")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_full_disk_leaves_what_was_kept() {
    let crib = Crib::new();
    keep(&crib, "kept", CANARY);
    let before = fs::read(crib.path(FILE)).unwrap();
    // No file of this process may grow: every write fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f 0; echo another value | '{TOOLCRIB}' secret set other 2>&1 | cat");
    let plain = crib.toolcrib(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(crib.path(".")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", "/usr/bin:/bin");
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(said.contains("error: secrets `") && said.contains("too large"), "{said}");
    assert_eq!(fs::read(crib.path(FILE)).unwrap(), before);
    assert_eq!(names(&crib), ["kept"]);
    assert!(!crib.path("secrets/secrets.enc.new").exists());
}

#[test]
fn writers_at_once_lose_nothing() {
    let crib = Crib::new();
    thread::scope(|scope| {
        for writer in 0..4 {
            let crib = &crib;
            scope.spawn(move || {
                for round in 0..4 {
                    let ran = keep(crib, &format!("w{writer}-{round}"), "a value of some length");
                    assert_eq!(ran.code, Some(0), "{ran:?}");
                }
            });
        }
    });
    assert_eq!(names(&crib).len(), 16);
}

#[test]
fn a_keyring_that_never_answers_is_waited_for_a_few_seconds() {
    let crib = Crib::new();
    let socket = crib.path("bus");
    let _listener = UnixListener::bind(&socket).unwrap();
    let run = |args: &[&str], store: &str| {
        let started = Instant::now();
        let mut command = crib.toolcrib(&[&["secret"], args, &["--secrets-store", store]].concat());
        command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", socket.display()));
        (Ran::from(command.output().unwrap()), started.elapsed())
    };
    for store in ["keyring", "auto"] {
        let (ran, took) = run(&["list", "--json"], store);
        assert!(ran.code == Some(1) && ran.stderr.contains("it did not answer within 5 s"), "{ran:?}");
        assert!(ran.stderr.contains("--set secrets.store=file"), "{ran:?}");
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
    keep(&crib, "github", CANARY);
    let (ran, took) = run(&["remove", "github"], "auto");
    assert!(ran.code == Some(1) && ran.stderr.contains("the keyring may still contain `github`"), "{ran:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(names(&crib), [""; 0], "it is gone from the file");
}

#[test]
fn where_no_keyring_can_be_there_is_the_file_alone() {
    let crib = Crib::new();
    keep(&crib, "github", CANARY);
    for args in [&["list", "--json"][..], &["remove", "github"]] {
        let mut command = crib.toolcrib(&[&["secret"], args, &["--set", "secrets.store=auto"]].concat());
        let ran = Ran::from(command.env("XDG_RUNTIME_DIR", crib.path(".")).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(names(&crib), [""; 0]);
}

#[test]
fn doctor_tells_of_the_store_and_of_no_value() {
    let page = Page::new();
    let crib = Crib::new();
    keep(&crib, "github", CANARY);
    let output = |ran: &Ran| assert!(found(ran.stdout.as_bytes(), CANARY).is_none(), "{ran:?}");
    output(&page.run(&crib, &["doctor"]));
    fs::write(crib.path(FILE), "something else").unwrap();
    output(&page.run(&crib, &["doctor"]));
    page.matches("secret/doctor");
}
