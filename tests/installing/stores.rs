//! Kills, two processes at once, and a full disk: the old or the new state, never half a tool.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib_bundle::Bundle;

use super::{FILE, NAME, Release, crib, installed, lock, records, stored, tool};
use crate::crib::{Crib, Ran};

/// Environment variable with the number of kills.
const KILLS: &str = "TOOLCRIB_TEST_KILLS";
/// Number of kills, unless the variable says another.
const DEFAULT_KILLS: u64 = 20;

/// Digests of the bundles in a lock.
fn digests(lock: &str) -> Vec<String> {
    let of = |line: &str| line.strip_prefix("digest = \"").map(|rest| rest.trim_end_matches('"').to_owned());
    lock.lines().filter_map(of).collect()
}

/// Asserts that every bundle of the lock is agreed to and stored whole.
fn assert_whole(crib: &Crib, context: &str) {
    let records: Vec<Value> = records(crib);
    for digest in digests(&lock(crib)) {
        assert!(records.iter().any(|it| it["bundle"]["digest"] == digest.as_str()), "{context}: {digest}");
        let mut bundle = Bundle::open(fs::File::open(stored(crib, &digest)).expect(context)).expect(context);
        bundle.verify().expect(context);
        assert_eq!(bundle.digest().to_string(), digest, "{context}");
    }
    let ran = crib.run(&["outdated", "--json"]);
    assert!(serde_json::from_str::<Value>(&ran.stdout).is_ok(), "{context}: {ran:?}");
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_release() {
    let kills = std::env::var(KILLS).map_or(DEFAULT_KILLS, |kills| kills.parse().expect(KILLS));
    let (crib, mut installed) = installed();
    let update = |trust: &str| crib.toolcrib(&["update", "--min-age=0", "--accept=tag-moved", trust]);
    let started = Instant::now();
    let padding = vec![7; 4 << 20];
    let (mut killed, mut replaced) = (0, 0);
    let mut time = Duration::ZERO;
    for at in 0..kills {
        let release = Release { padding: [&padding[..], &at.to_le_bytes()].concat(), ..Release::new("1.3.0") };
        let digest = release.write(&crib, FILE);
        let begun = Instant::now();
        let mut child =
            update(&format!("--trust={digest}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if at > 0 {
            // From the start to a little beyond the usual end, in an order that covers it evenly.
            let part = u32::try_from(at * 7919 % 1000).unwrap();
            thread::sleep(time * part / 900);
            child.kill().unwrap();
        }
        let ended = child.wait().unwrap().success();
        if at == 0 {
            time = begun.elapsed();
        }
        killed += usize::from(!ended);
        assert_whole(&crib, &format!("kill {at}"));
        let now = digests(&lock(&crib));
        assert!(now == [installed.clone()] || now == [digest.clone()], "kill {at}: {now:?}");
        assert!(!ended || now == [digest.clone()], "kill {at}");
        replaced += usize::from(now[0] == digest);
        installed.clone_from(&now[0]);
    }
    println!("{killed} of {kills} killed, {replaced} replaced, in {:?}", started.elapsed());
    let digest = Release::new("1.4.0").write(&crib, FILE);
    let ran = Ran::from(update(&format!("--trust={digest}")).output().unwrap());
    assert_eq!(ran.code, Some(0), "the next update works: {ran:?}");
    assert_eq!((records(&crib).len(), digests(&lock(&crib))), (1, vec![digest]));
    let left: Vec<_> = fs::read_dir(crib.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".toolcrib.lock")), "{left:?}");
}

#[test]
fn kills_during_installation_and_removal_leave_all_or_nothing() {
    let crib = crib();
    let digest = Release { padding: vec![7; 1 << 20], ..Release::new("1.2.0") }.write(&crib, FILE);
    let trust = format!("--trust={digest}");
    for at in 0..DEFAULT_KILLS {
        let args = if at % 2 == 0 { vec!["install", FILE, &trust] } else { vec!["remove", NAME] };
        let mut child = crib.toolcrib(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(at * 7 % 60));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_whole(&crib, &format!("{args:?} {at}"));
    }
    assert_eq!(crib.run(&["install", FILE, &trust]).code, Some(0));
    assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
    assert!(!stored(&crib, &digest).exists() && records(&crib).is_empty());
}

#[test]
fn two_installations_at_once_are_both_whole() {
    let crib = crib();
    let names = ["acme/a", "acme/b", "acme/c", "acme/d"];
    let digests_of: Vec<String> = names
        .iter()
        .map(|name| {
            let tools = vec![tool(&name.replace('/', "_"), "A tool.", &["TOKEN"])];
            Release { name, tools, padding: vec![1; 1 << 20], ..Release::new("1.0.0") }.write(&crib, &name[5..])
        })
        .collect();
    let start = |at: usize| {
        let (file, trust) = (format!("./{}", &names[at][5..]), format!("--trust={}", digests_of[at]));
        crib.toolcrib(&["install", &file, &trust]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Each twice.
    let all: Vec<_> = (0..8).map(|at| start(at % 4)).collect();
    for child in all {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let mut found = digests(&lock(&crib));
    found.sort();
    let mut wanted = digests_of.clone();
    wanted.sort();
    assert_eq!((found, records(&crib).len()), (wanted, 4));
    assert_whole(&crib, "two at once");
}

/// Runs a command that can write files of at most this many KiB, as on a full disk.
fn limited(command: &Command, kib: u64) -> Ran {
    let program = Path::new(command.get_program());
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("ulimit -f {kib}; exec \"$0\" \"$@\"")]).arg(program).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap()).env_clear();
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    Ran::from(shell.env("PATH", "/usr/bin:/bin").output().unwrap())
}

#[test]
fn a_full_disk_loses_nothing() {
    for kib in [0, 1, 2, 64, 3000] {
        let (crib, first) = installed();
        let before = (lock(&crib), records(&crib));
        let next = Release { padding: vec![7; 4 << 20], ..Release::new("1.3.0") };
        let trust = format!("--trust={}", next.write(&crib, FILE));
        let ran = limited(&crib.toolcrib(&["update", "--min-age=0", &trust]), kib);
        assert_eq!(ran.code, Some(1), "{kib}: {ran:?}");
        assert!(ran.stderr.contains("File too large"), "{kib}: {ran:?}");
        assert_eq!((lock(&crib), records(&crib)), before, "{kib}");
        assert!(stored(&crib, &first).is_file());
        assert_whole(&crib, "full disk");
        assert_eq!(crib.run(&["update", "--min-age=0", &trust]).code, Some(0), "{kib}: once there is space");
    }
}
