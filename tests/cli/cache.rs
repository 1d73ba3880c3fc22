//! Contract of `toolcrib cache`, through the built program.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, guest};

use super::ECHO;

/// Flags that name the cache of a crib.
const FOLDER: [&str; 2] = ["--set", "cache.dir=cache"];

/// Creates a crib with a compiled module, used three hours ago, and a compiled component, used five hours ago.
fn crib() -> Crib {
    let crib = Crib::new();
    crib.install_wat("module", ECHO);
    crib.install(&guest("echo"), "component");
    let tool = |name: &str| json!({ "name": name, "command": [format!("./tools/bin/{name}")] });
    crib.manifest(&json!({ "tools": [tool("module"), tool("component")] }));
    for (name, hours) in [("module", 3), ("component", 5)] {
        let before = entries(&crib);
        assert_eq!(crib.outcome(name, &json!({ "a": 1 }), &FOLDER), "ok");
        let file = entries(&crib).into_iter().find(|file| !before.contains(file)).expect("an entry");
        let used = SystemTime::now() - Duration::from_hours(hours);
        File::options().write(true).open(file).unwrap().set_modified(used).unwrap();
    }
    crib
}

fn entries(crib: &Crib) -> Vec<PathBuf> {
    let files = fs::read_dir(crib.path("cache")).into_iter().flatten().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "cwasm")).collect()
}

fn cache(crib: &Crib, arguments: &[&str]) -> Ran {
    crib.run(&[&["cache"], arguments, &FOLDER].concat())
}

fn listed(crib: &Crib) -> Vec<Value> {
    let ran = cache(crib, &["list", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("a JSON array")
}

#[test]
fn a_list_shows_the_latest_use_first_and_the_total() {
    let crib = crib();
    let listed = listed(&crib);
    assert_eq!(listed.iter().map(|entry| &entry["kind"]).collect::<Vec<_>>(), ["module", "component"]);
    for entry in &listed {
        let file = crib.path("cache").join(entry["file"].as_str().unwrap());
        assert_eq!(entry["bytes"], file.metadata().unwrap().len());
        assert!(entry["digest"].as_str().unwrap().starts_with("sha256:"), "{entry}");
        assert!(entry["used"].as_str().unwrap().ends_with('Z'), "{entry}");
        assert_eq!(entry.as_object().unwrap().len(), 5, "{entry}");
    }
    let table = cache(&crib, &["list"]);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["DIGEST", "KIND", "SIZE", "LAST", "USED"]);
    let digest = &listed[0]["digest"].as_str().unwrap()[.."sha256:".len() + 12];
    let size = match listed[0]["bytes"].as_u64().unwrap() {
        bytes @ ..1024 => format!("{bytes} bytes"),
        bytes @ ..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        bytes => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    };
    assert!(lines[1].starts_with(&format!("{digest}…  module     {size}")), "{}", table.stdout);
    assert!(lines[2].contains("…  component  "), "{}", table.stdout);
    assert!(table.stderr.starts_with("2 entries, ") && table.stderr.ends_with(" of 2 GiB\n"), "{}", table.stderr);
    let small = cache(&crib, &["list", "--set", "cache.max=64MiB"]);
    assert!(small.stderr.ends_with(" of 64 MiB\n"), "{}", small.stderr);
    let doctor = crib.run(&[&["doctor"][..], &FOLDER].concat()).stdout;
    assert!(doctor.contains(", 2 compiled tools, ") && doctor.contains(" of 2 GiB\n"), "{doctor}");
}

#[test]
fn prune_removes_the_oldest_use_and_clear_all() {
    let crib = crib();
    let sizes: Vec<u64> = listed(&crib).iter().map(|entry| entry["bytes"].as_u64().unwrap()).collect();
    let none = cache(&crib, &["prune"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert_eq!(none.stderr, "removed 0 entries, 0 bytes\n");
    let pruned = cache(&crib, &["prune", "--max", &sizes[0].to_string()]);
    assert_eq!((pruned.code, pruned.stdout.as_str()), (Some(0), ""));
    assert!(pruned.stderr.starts_with("removed 1 entry, "), "{}", pruned.stderr);
    let left = listed(&crib);
    assert_eq!(left.iter().map(|entry| &entry["kind"]).collect::<Vec<_>>(), ["module"]);
    let cleared = cache(&crib, &["clear"]);
    assert_eq!((cleared.code, cleared.stdout.as_str()), (Some(0), ""));
    assert!(cleared.stderr.starts_with("removed 1 entry, "), "{}", cleared.stderr);
    assert!(entries(&crib).is_empty() && crib.path("cache/key").exists());
    assert_eq!(crib.outcome("module", &json!({ "a": 1 }), &FOLDER), "ok");
    assert_eq!(listed(&crib).len(), 1, "and it is used again");
}

#[test]
fn the_variable_sets_the_limit_of_calls_lists_and_prunes() {
    let crib = crib();
    let with_limit = |arguments: &[&str], limit: &str| {
        let mut command = crib.toolcrib(&[arguments, &FOLDER].concat());
        Ran::from(command.env("TOOLCRIB_MAX_CACHE", limit).output().unwrap())
    };
    assert!(with_limit(&["cache", "list"], "3MiB").stderr.ends_with(" of 3 MiB\n"));
    assert!(with_limit(&["cache", "prune"], "1").stderr.starts_with("removed 2 entries, "));
    assert_eq!(with_limit(&["call", "module", "{}"], "1").code, Some(0));
    assert!(entries(&crib).is_empty());
    let wrong = with_limit(&["call", "module", "{}"], "much");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("`much` is not a size such as `64MiB`"), "{}", wrong.stderr);
}

#[test]
fn a_missing_folder_is_empty_and_is_not_created() {
    let crib = Crib::new();
    let table = cache(&crib, &["list"]);
    assert_eq!((table.code, table.stdout.as_str()), (Some(0), "DIGEST  KIND  SIZE  LAST USED\n"));
    assert_eq!(table.stderr, "0 entries, 0 bytes of 2 GiB\n");
    assert!(listed(&crib).is_empty());
    for action in ["prune", "clear"] {
        let ran = cache(&crib, &[action]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
        assert_eq!(ran.stderr, "removed 0 entries, 0 bytes\n");
    }
    assert!(!crib.path("cache").exists());
    for arguments in [&[][..], &["prune", "--max", "0"], &["clear", "--max", "1"], &["remove"]] {
        assert_eq!(cache(&crib, arguments).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn only_entries_and_abandoned_temporary_files_are_removed() {
    let crib = crib();
    let entry = listed(&crib)[0]["file"].as_str().unwrap().to_owned();
    let hours_ago = |path: &PathBuf, hours| {
        let file = File::create(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
    };
    let foreign = ["notes.md", "notes.cwasm", ".unfinished-notes.md", &format!("{entry}.bak"), &format!("x{entry}")]
        .map(|name| crib.path("cache").join(name));
    foreign.iter().for_each(|path| hours_ago(path, 100));
    let (killed, alive) = (crib.path("cache/.unfinished-kiLLed"), crib.path("cache/.unfinished-alive1"));
    hours_ago(&killed, 2);
    hours_ago(&alive, 0);
    let folder = crib.path("cache").join(entry.replacen(char::is_alphanumeric, "0", 60));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(&entry), "within").unwrap();
    assert!(cache(&crib, &["prune", "--max", "1"]).stderr.starts_with("removed 2 entries, "));
    assert!(cache(&crib, &["clear"]).stderr.starts_with("removed 0 entries, "));
    assert!(foreign.iter().all(|path| path.exists()) && folder.join(&entry).exists());
    assert!(!killed.exists() && alive.exists());
    assert!(crib.path("cache/key").exists());
}

#[cfg(unix)]
#[test]
fn a_shared_folder_is_refused_with_a_hint() {
    use std::os::unix::fs::PermissionsExt;

    let crib = crib();
    fs::set_permissions(crib.path("cache"), fs::Permissions::from_mode(0o777)).unwrap();
    for action in ["list", "prune", "clear"] {
        let ran = cache(&crib, &[action]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{action}");
        assert_eq!(
            ran.stderr,
            "error: cache cache: it is a link, or belongs to or can be written by someone else\n\
             hint: check that only you own and can write the directory, or name another with `--set cache.dir=DIR`\n"
        );
    }
    assert_eq!(entries(&crib).len(), 2);
}

#[test]
fn the_help_of_each_action_teaches_with_examples() {
    let crib = Crib::new();
    for action in ["list", "prune", "clear"] {
        let help = crib.run(&["cache", action, "--help"]);
        assert_eq!(help.code, Some(0));
        for words in ["Examples:\n  toolcrib cache ", "--set", "General:"] {
            assert!(help.stdout.contains(words), "{words} in {}", help.stdout);
        }
    }
    let help = crib.run(&["completions", "bash"]).stdout;
    assert!(help.contains("--max-memory") && !help.contains("--max-cache"));
}

#[cfg(unix)]
#[test]
fn a_warm_cache_has_every_tool_and_one_that_cannot_be_used_is_an_error() {
    let crib = Crib::with_guests(&["echo", "spin"]);
    let ran = cache(&crib, &["warm"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("2 tools compiled"), "{ran:?}");
    assert_eq!(entries(&crib).len(), 2);
    let warm = entries(&crib);
    assert_eq!(crib.outcome("echo", &json!({ "a": 1 }), &FOLDER), "ok");
    assert_eq!(entries(&crib), warm, "a call compiles nothing");
    std::os::unix::fs::symlink(crib.path("cache"), crib.path("linked")).unwrap();
    let ran = crib.run(&["cache", "warm", "--set", "cache.dir=linked"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the cache does not have 2 tools of 2"), "{ran:?}");
    fs::write(crib.path("tools/bin/spin.wasm"), "no program").unwrap();
    let ran = cache(&crib, &["warm"]);
    assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains("spin"), "{ran:?}");
}
