//! Outside influences on the program: interrupts, kills, no terminal for questions, and a clock that jumps.

#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(unix)]
use serde_json::Value;
use serde_json::json;

use crate::crib::Crib;
#[cfg(unix)]
use crate::crib::{Ran, until_started};

#[cfg(unix)]
#[test]
fn an_interrupted_call_is_out_before_its_deadline() {
    for guest in ["spin", "sleep", "poll_ready"] {
        let crib = Crib::with_guests(&[guest]);
        let mut command = crib.toolcrib(&["call", guest, "--records", "kept"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until_started(&crib.path("kept"), 1);
        let began = Instant::now();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{guest}");
        assert!(began.elapsed() < Duration::from_secs(20), "{guest}: {:?}", began.elapsed());
        let outcomes: Vec<Value> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
        assert_eq!(outcomes, ["cancelled"], "{guest}");
    }
}

#[cfg(unix)]
#[test]
fn a_writer_that_is_killed_leaves_a_sound_log() {
    let crib = Crib::with_guests(&["empty"]);
    assert_eq!(crib.run(&["call", "empty"]).code, Some(0));
    let word = "x".repeat(200);
    // An unknown tool is recorded too, and cheaply.
    let script = format!("while :; do '{}' call 'unknown-{word}' '{{}}'; done", crate::crib::TOOLCRIB);
    for round in 0..20_u64 {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&script).current_dir(crib.path(".")).env_clear();
        command.env("HOME", crib.path("home")).env("TOOLCRIB_AUDIT_DIR", crib.path("audit"));
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 + round * 13 % 50));
        let group = format!("-{}", shell.id());
        assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
        shell.wait().unwrap();
    }
    assert_eq!(crib.run(&["call", "empty"]).code, Some(0), "the next call is signed for");
    let verified = crib.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn tools_run_while_no_server_answers() {
    let crib = Crib::with_guests(&["echo"]);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", nobody.local_addr().unwrap());
    drop(nobody);
    let began = Instant::now();
    let ran = crib.run(&[
        "run",
        "go",
        "--base-url",
        &address,
        "--model",
        "m",
        "--set",
        "model.http_retry_backoff=1ms",
        "--quiet",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "retries are bounded");
    assert_eq!(crib.outcome("echo", &json!({"a": 1}), &[]), "ok");
}

/// Shared library that lets the wall clock jump a year forward and back at every read, from the first one or the
/// second, and leaves every other clock.
#[cfg(target_os = "linux")]
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long looks;
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    long first = getenv("JUMPS_FIRST") != 0;
    if (clock == CLOCK_REALTIME && (__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) + first) % 2)
        now->tv_sec += 365L * 24 * 60 * 60;
    return failed;
}
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_clock_that_jumps_moves_no_deadline() {
    // The log continues in its newest file, so that a jump shows if the earlier day comes first: in one of the two, unless
    // a busy machine reads the clock another number of times.
    let has_jumped = |_| [false, true].map(days_of_a_jumping_clock).iter().any(|days| *days > 1);
    assert!((0..5).any(has_jumped), "the clock did jump");
}

/// Makes calls under a clock that jumps at the first read or at the second, and returns the days of the log.
#[cfg(target_os = "linux")]
fn days_of_a_jumping_clock(first: bool) -> usize {
    let crib = Crib::with_guests(&["spin", "sleep", "nap"]);
    fs::write(crib.path("jumping.c"), JUMPING).unwrap();
    let library = crib.path("jumping.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(crib.path("jumping.c")).status();
    assert!(built.expect("a C compiler, which the build needs too").success());
    let call = |name: &str, arguments: &str, first: bool| {
        let mut command = crib.toolcrib(&["call", name, arguments, "--json", "--set", "limits.tool_timeout=700ms"]);
        if first {
            command.env("JUMPS_FIRST", "1");
        }
        let ran = Ran::from(command.env("LD_PRELOAD", &library).output().unwrap());
        let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        (line["receipt"]["outcome"].clone(), line["receipt"]["ms"].as_f64().unwrap())
    };
    for (name, first) in [("spin", first), ("sleep", !first)] {
        let (outcome, took) = call(name, "{}", first);
        assert_eq!(outcome, "deadline");
        assert!((700.0..20_000.0).contains(&took), "{name}: {took}");
    }
    assert_eq!(call("nap", r#"{"ms":100}"#, !first).0, "ok", "no wait is cut short");
    let verified = crib.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    crib.logs().len()
}

/// A write over the system's limit for files ends a program that does not handle it, and a guest chooses the size of
/// its writes.
#[cfg(unix)]
#[test]
fn a_file_that_outgrows_the_systems_limit_ends_no_host() {
    let crib = Crib::with_guests(&["fill_disk", "echo"]);
    let call = format!(
        "ulimit -f 1024; exec '{}' call fill_disk '{{\"way\":\"append\",\"most\":10000000}}' --json --allow-write=work",
        crate::crib::TOOLCRIB
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(&call).current_dir(crib.path(".")).env_clear().env("HOME", crib.path("home"));
    command.env("TOOLCRIB_AUDIT_DIR", crib.path("audit")).env("TOOLCRIB_CACHE_DIR", crib.path("cache"));
    let ran = Ran::from(command.output().unwrap());
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!((ran.code, &line["receipt"]["outcome"]), (Some(1), &json!("failed")), "{line}");
    assert_eq!(crib.records().last().unwrap()["outcome"], "failed");
    assert_eq!(crib.outcome("echo", &json!({}), &[]), "ok");
}
