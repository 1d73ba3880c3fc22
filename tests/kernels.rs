//! Linux without the calls of newer kernels, as old kernels and some containers refuse them, and with little address space:
//! each has a fallback.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde_json::{Value, json};

use crate::crib::{Crib, Ran, TOOLCRIB};
use crate::files::race::Swapping;
use crate::hostile::programs::table_of;

/// Variable with the command line of the separate process, as a JSON array.
const COMMAND: &str = "TOOLCRIB_KERNEL_COMMAND";
/// Variable with the error that the separate process gets for `openat2`.
const ERROR: &str = "TOOLCRIB_KERNEL_ERROR";
/// Errors for `openat2`: of a kernel that does not know it, and of a container that does not permit it.
const ENOSYS: u32 = 38;
const EPERM: u32 = 1;
/// Number of `openat2`, the same on every processor.
const OPENAT2: i64 = 437;
/// Number of the request of `ioctl` that lists written pages.
const PAGEMAP_SCAN: u64 = 0xc060_6610;
#[cfg(target_arch = "x86_64")]
const IOCTL: i64 = 16;
#[cfg(not(target_arch = "x86_64"))]
const IOCTL: i64 = 29;

/// Entry of the separate process: refuses the calls of newer kernels for ever, and becomes the program.
#[test]
#[ignore = "it is started by the tests of this module, in a process of its own"]
fn a_process_on_an_older_kernel() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let words: Vec<String> = serde_json::from_str(&command).unwrap();
    let refusal: u32 = std::env::var(ERROR).unwrap().parse().unwrap();
    // An older kernel does not know the first; it knows `ioctl`, and not this request.
    for (number, rules, error) in [(OPENAT2, vec![], refusal), (IOCTL, vec![scan()], 25)] {
        let filter = SeccompFilter::new(
            [(number, rules)].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(error),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
    }
    let opened = openat2(CWD, ".", OFlags::RDONLY, Mode::empty(), ResolveFlags::empty());
    assert_eq!(opened.unwrap_err().raw_os_error().unsigned_abs(), refusal, "the filter refuses it");
    panic!("{}", Command::new(TOOLCRIB).args(words).exec());
}

fn scan() -> SeccompRule {
    let request = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PAGEMAP_SCAN).unwrap();
    SeccompRule::new(vec![request]).unwrap()
}

/// Runs the program in a crib as on an older kernel, with this error for `openat2`.
fn on_an_older_kernel(crib: &Crib, error: u32, args: &[&str]) -> Ran {
    let like = crib.toolcrib(&[]);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "kernels::a_process_on_an_older_kernel", "--ignored", "--nocapture", "--test-threads=1"])
        .current_dir(crib.dir.path())
        .env_clear()
        .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(COMMAND, json!(args).to_string())
        .env(ERROR, error.to_string());
    Ran::from(command.output().unwrap())
}

/// Runs the program in a crib with at most this much address space, in KiB.
fn with_addresses(crib: &Crib, kibibytes: u32, args: &[&str]) -> Ran {
    let like = crib.toolcrib(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {kibibytes} && exec \"$0\" \"$@\""), TOOLCRIB])
        .args(args)
        .current_dir(crib.dir.path())
        .env_clear()
        .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ran::from(command.output().unwrap())
}

/// Object at the end of the output, after the words of the test program.
fn answer(ran: &Ran) -> Value {
    let line = ran.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(&line[line.find('{').unwrap_or(0)..]).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn files(crib: &Crib) {
    fs::write(crib.path("work/a.txt"), "inside").unwrap();
    fs::write(crib.path("secret.txt"), "outside").unwrap();
    crate::crib::link("a.txt", &crib.path("work/near"));
    crate::crib::link("../secret.txt", &crib.path("work/far"));
    crate::crib::link(crib.path("secret.txt").to_str().unwrap(), &crib.path("work/absolute"));
}

#[test]
fn an_older_kernel_gives_the_same_access_to_files_and_no_more() {
    let crib = Crib::with_guests(&["file_io"]);
    files(&crib);
    let long = format!("{}a.txt", "./".repeat(3000));
    for path in ["a.txt", "near", "far", "absolute", "../secret.txt", "no/such", &long] {
        let arguments = json!({"op": "read", "path": path}).to_string();
        let args = ["call", "file_io", &arguments, "--allow-write=work"];
        let newer = crib.run(&args);
        for error in [ENOSYS, EPERM] {
            let older = on_an_older_kernel(&crib, error, &args);
            assert_eq!((answer(&newer), newer.code), (answer(&older), older.code), "{path}: {older:?}");
            assert!(!older.stdout.contains("outside"), "{path}: {older:?}");
        }
    }
}

/// Answer of one operation in `work`.
fn operation(ran: &Ran) -> Value {
    answer(ran)["result"].clone()
}

#[test]
fn an_older_kernel_truncates_what_the_guest_may_write_and_no_file_of_the_hosts_own() {
    let crib = Crib::with_guests(&["file_io"]);
    fs::write(crib.path("audit/own"), "the host's own").unwrap();
    fs::hard_link(crib.path("audit/own"), crib.path("work/link")).unwrap();
    for (error, op) in [(ENOSYS, "truncate"), (ENOSYS, "write"), (EPERM, "truncate"), (EPERM, "write")] {
        let call = |path: &str| {
            let arguments = json!({"op": op, "path": path, "text": "x"}).to_string();
            let args = ["call", "file_io", &arguments, "--json", "--allow-write=work"];
            operation(&on_an_older_kernel(&crib, error, &args))
        };
        fs::write(crib.path("work/a.txt"), "inside").unwrap();
        assert_eq!(call("link"), json!({"error": "not-permitted"}), "{op}");
        assert_eq!(fs::read_to_string(crib.path("audit/own")).unwrap(), "the host's own", "{op}");
        assert!(call("a.txt").get("ok").is_some(), "{op}");
        let left = fs::read_to_string(crib.path("work/a.txt")).unwrap();
        assert_eq!(left, if op == "write" { "x" } else { "" }, "{op}");
    }
}

/// Operations that change entries, in their order, each with its path and its other path.
const CHANGES: [(&str, &str, &str); 26] = [
    ("mkdir", "made", ""),
    ("mkdir", "made", ""),
    ("mkdir", "made/.git", ""),
    ("mkdir", ".git", ""),
    ("write", "made/new", ""),
    ("open_new", "made/new", ""),
    ("open_new", "dangling", ""),
    ("write", "dangling", ""),
    ("hard_link", "made/new", "again"),
    ("hard_link", "far", "out"),
    ("symlink", "made/in", "../a.txt"),
    ("symlink", "made/out", "../../secret.txt"),
    ("symlink", "made/absolute", "/etc/passwd"),
    ("symlink", "mise", "made"),
    ("rename", "made/in", "in"),
    ("rename", "far", "made/far"),
    ("rename", "made", "moved"),
    ("rename", "project", "moved_project"),
    ("write", "up/secret.txt", ""),
    ("rename", "a.txt", "up/a.txt"),
    ("remove", "up/secret.txt", ""),
    ("list", "up", ""),
    ("remove", "again/", ""),
    ("remove", "again", ""),
    ("remove", "moved/new", ""),
    ("remove_folder", "moved", ""),
];
/// Operations on protected files, by links that lead to them.
const PROTECTED: [(&str, &str, &str); 9] = [
    ("rename", "a.txt", "settings/config"),
    ("write", "settings/hooks/pre-commit", ""),
    ("write", "to_hook", ""),
    ("rename", "a.txt", "settings/hooks/pre-push"),
    ("rename", "settings/config", "free"),
    ("hard_link", "settings/config", "free"),
    ("set_times", "settings/config", ""),
    ("set_times_of_name", "settings/config", ""),
    ("remove", "settings/config", ""),
];

#[test]
fn an_older_kernel_changes_entries_by_their_targets_as_a_newer_one() {
    let all = |run: &dyn Fn(&Crib, &[&str]) -> Ran| {
        let crib = Crib::with_guests(&["file_io"]);
        files(&crib);
        for folder in ["work/project/.git/hooks", "work/.git/hooks"] {
            fs::create_dir_all(crib.path(folder)).unwrap();
        }
        fs::write(crib.path("work/.git/config"), "before").unwrap();
        for (target, link) in
            [(".git", "settings"), (".git/hooks/pre-commit", "to_hook"), ("absent", "dangling"), ("..", "up")]
        {
            crate::crib::link(target, &crib.path("work").join(link));
        }
        let answers: Vec<Value> = CHANGES
            .iter()
            .chain(&PROTECTED)
            .map(|(op, path, to)| {
                let arguments = json!({"op": op, "path": path, "to": to, "text": "x"}).to_string();
                let args = ["call", "file_io", &arguments, "--json", "--allow-write=work"];
                operation(&run(&crib, &args))
            })
            .collect();
        assert_eq!(fs::read_to_string(crib.path("secret.txt")).unwrap(), "outside");
        assert_eq!(fs::read_to_string(crib.path("work/.git/config")).unwrap(), "before");
        assert!(!crib.path("work/.git/hooks/pre-commit").exists());
        answers
    };
    let newer = all(&|crib, args| crib.run(args));
    for (operation, answer) in PROTECTED.iter().zip(&newer[CHANGES.len()..]) {
        assert_eq!(answer, &json!({"error": "not-permitted"}), "{operation:?}");
    }
    for error in [ENOSYS, EPERM] {
        let older = all(&|crib, args| on_an_older_kernel(crib, error, args));
        for (operation, (newer, older)) in CHANGES.iter().chain(&PROTECTED).zip(newer.iter().zip(&older)) {
            assert_eq!(newer, older, "{operation:?} {error}");
        }
    }
}

/// Number of times that a guest opens a file while it is swapped.
const TIMES: usize = 10_000;

#[test]
fn an_older_kernel_opens_nothing_outside_while_links_and_fifos_are_swapped() {
    let crib = Crib::with_guests(&["open_often"]);
    files(&crib);
    fs::create_dir(crib.path("work/folder")).unwrap();
    fs::write(crib.path("work/folder/secret.txt"), "within").unwrap();
    crate::crib::link("folder/secret.txt", &crib.path("work/by_folder"));
    let made = Command::new("mkfifo").arg(crib.path("work/fifo")).status();
    if !made.is_ok_and(|made| made.success()) {
        eprintln!("skipped: no mkfifo here");
        return;
    }
    let at = |name: &str| crib.path("work").join(name);
    let (spot, next, file, fifo) = (at("spot"), at("next"), at("a.txt"), at("fifo"));
    let (folder, away, up) = (at("folder"), at("away"), at("up"));
    fs::hard_link(&file, &spot).unwrap();
    crate::crib::link("..", &up);
    let swapping = Swapping::start(move || {
        for target in ["../secret.txt", "a.txt"] {
            crate::crib::link(target, &next);
            fs::rename(&next, &spot).unwrap();
        }
        for name in [&fifo, &file] {
            fs::hard_link(name, &next).unwrap();
            fs::rename(&next, &spot).unwrap();
        }
        for (from, to) in [(&folder, &away), (&up, &folder), (&folder, &up), (&away, &folder)] {
            fs::rename(from, to).unwrap();
        }
    });
    for error in [ENOSYS, EPERM] {
        for (path, writes, content) in [("spot", false, "inside"), ("by_folder", false, "within")] {
            let arguments = json!({"path": path, "times": TIMES, "writes": writes}).to_string();
            let args = ["call", "open_often", &arguments, "--json", "--allow-write=work", "--tool-timeout=120s"];
            let found = operation(&on_an_older_kernel(&crib, error, &args));
            let read = found["read"].as_object().unwrap_or_else(|| panic!("{found}"));
            assert!(read.keys().all(|read| read == content), "{path}: {found}");
            assert!(found["errors"]["not-permitted"].as_u64() > Some(0) && !read.is_empty(), "{path}: {found}");
        }
        let arguments = json!({"path": "spot", "times": TIMES, "writes": true}).to_string();
        let args = ["call", "open_often", &arguments, "--json", "--allow-write=work", "--tool-timeout=120s"];
        let found = operation(&on_an_older_kernel(&crib, error, &args));
        assert!(found["errors"]["not-permitted"].as_u64() > Some(0), "{found}");
        fs::write(at("a.txt"), "inside").unwrap();
    }
    drop(swapping);
    assert_eq!(fs::read_to_string(crib.path("secret.txt")).unwrap(), "outside");
}

#[test]
fn doctor_names_what_an_older_kernel_lacks_and_the_fallback() {
    let crib = Crib::with_guests(&["echo"]);
    for error in [ENOSYS, EPERM] {
        let found = on_an_older_kernel(&crib, error, &["doctor"]).stdout;
        assert!(found.contains("the system does not list written pages"), "{found}");
    }
}

#[test]
fn little_address_space_is_enough_for_calls_and_their_limits() {
    let crib = Crib::with_guests(&["echo", "grow", "recurse", "spin"]);
    // Each grows its table, and fails if it may not.
    let guests = [("within", 60_000), ("beyond", 70_000)];
    for (name, elements) in guests {
        crib.install_wat(name, &table_of(elements));
    }
    let entry = |name: &str| json!({"name": name, "command": [format!("./tools/bin/{name}")]});
    let tools = ["echo", "grow", "recurse", "spin", "within", "beyond"].map(entry);
    crib.manifest(&json!({ "tools": tools }));
    // Less than one memory of the pool needs, and more than one compiler may use.
    let call = |name: &str, flags: &[&str]| {
        let ran = with_addresses(&crib, 4 << 20, &[&["call", name, r#"{"a":1}"#, "--json"], flags].concat());
        answer(&ran)["receipt"]["outcome"].as_str().map(str::to_owned).unwrap_or_else(|| panic!("{ran:?}"))
    };
    assert_eq!(call("echo", &[]), "ok");
    assert_eq!(call("grow", &[]), "memory");
    assert_eq!(call("within", &[]), "ok");
    assert_eq!(call("beyond", &[]), "memory", "more elements than a table may have");
    assert_eq!(call("recurse", &[]), "stack");
    assert_eq!(call("spin", &["--set=limits.tool_timeout=200ms"]), "deadline");
    assert_eq!(call("spin", &["--set=limits.fuel=1000000"]), "fuel");
    let found = with_addresses(&crib, 4 << 20, &["doctor"]).stdout;
    assert!(found.contains("address space is limited"), "{found}");
    assert!(!crib.run(&["doctor"]).stdout.contains("address space is limited"));
}

#[test]
fn a_tool_is_not_blamed_where_the_system_has_no_addresses_left() {
    let crib = Crib::with_guests(&["echo"]);
    let call = |kibibytes| answer(&with_addresses(&crib, kibibytes, &["call", "echo", r#"{"a":1}"#, "--json"]));
    // The first compiles the program; the second leaves too little for its memory.
    assert_eq!(call(4 << 20)["receipt"]["outcome"], "ok");
    let refused = call(350_000);
    assert_eq!(refused["receipt"]["outcome"], "busy", "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("memory mappings"), "{refused}");
}
