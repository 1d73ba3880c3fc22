//! Size limit of the compile cache: the least recently used programs go first, processes evict at once, and no call fails
//! because of the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::crib::Crib;

use super::{SMALL, called, compiled, crib};

/// Program with a number below 64. All have the same size.
fn program(number: u32) -> Vec<u8> {
    wat::parse_str(SMALL.replace("i32.const 7", &format!("i32.const {number}"))).unwrap()
}

/// Calls the program with a number and returns the file of its entry, if it is a new one.
fn compile(crib: &Crib, number: u32, flags: &[&str]) -> Option<PathBuf> {
    let before = compiled(&crib.path("cache"));
    fs::write(crib.path("tools/bin/n.wasm"), program(number)).unwrap();
    assert_eq!(called(crib, flags).0, "ok");
    compiled(&crib.path("cache")).into_iter().find(|file| !before.contains(file))
}

fn total(cache: &Path) -> u64 {
    compiled(cache).iter().map(|file| file.metadata().unwrap().len()).sum()
}

fn set_used(file: &Path, hours_ago: u64) {
    let used = SystemTime::now() - Duration::from_hours(hours_ago);
    File::options().write(true).open(file).unwrap().set_modified(used).unwrap();
}

#[test]
fn the_least_recently_used_program_makes_room_for_a_new_one() {
    let crib = crib(&program(1));
    let [first, second, third] = [1, 2, 3].map(|number| compile(&crib, number, &[]).expect("an entry"));
    for (file, hours) in [(&first, 30), (&second, 20), (&third, 10)] {
        set_used(file, hours);
    }
    assert_eq!(compile(&crib, 1, &[]), None, "from the cache");
    let used = first.metadata().unwrap().modified().unwrap();
    assert!(used.elapsed().unwrap_or_default() < Duration::from_mins(30), "its use is recorded");
    // Room for three.
    let limit = total(&crib.path("cache")) + first.metadata().unwrap().len() / 2;
    let fourth = compile(&crib, 4, &["--max-cache", &limit.to_string()]).expect("an entry");
    let mut left = compiled(&crib.path("cache"));
    let mut expected = vec![first, third, fourth];
    left.sort();
    expected.sort();
    assert_eq!(left, expected, "without {}", second.display());
    assert!(total(&crib.path("cache")) <= limit);
    assert!(crib.path("cache/key").exists());
    assert!(compile(&crib, 2, &[]).is_some(), "compiled again");
}

#[test]
fn the_limit_of_an_embedder_is_that_of_the_folder() {
    let crib = crib(&program(1));
    for number in 1..=4 {
        compile(&crib, number, &[]);
    }
    let cache = crib.path("cache");
    let limit = total(&cache) / 2;
    fs::write(crib.path("tools/bin/n.wasm"), program(5)).unwrap();
    let builder = toolcrib::Runtime::builder(toolcrib::Audit::off()).source(crib.path("tools.json"));
    let runtime = builder.compile_cache(&cache).max_cache(limit).build().unwrap();
    assert_eq!(super::outcome(&runtime), toolcrib::Outcome::Ok);
    assert!(total(&cache) <= limit && !compiled(&cache).is_empty(), "{} of {limit}", total(&cache));
}

#[test]
fn a_program_beyond_the_whole_limit_is_not_stored() {
    let crib = crib(&program(1));
    for _ in 0..2 {
        assert_eq!(compile(&crib, 1, &["--set", "cache.max=1KiB"]), None);
    }
    assert!(compiled(&crib.path("cache")).is_empty());
}

#[test]
fn processes_that_compile_and_evict_at_once_all_answer() {
    let cribs = [crib(&program(1)), crib(&program(2))];
    let cache = cribs[0].path("cache");
    let folder = cache.to_str().unwrap();
    compile(&cribs[0], 1, &[]).expect("an entry");
    // Room for one program of two.
    let limit = (total(&cache) * 3 / 2).to_string();
    let together = |max: &str| {
        let spawn = |crib: &Crib, args: &[&str]| {
            let mut command = crib.toolcrib(args);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let calls = cribs
            .each_ref()
            .map(|crib| spawn(crib, &["call", "n", "{}", "--json", "--cache-dir", folder, "--max-cache", max]));
        let prune = spawn(&cribs[0], &["cache", "prune", "--max", "1", "--cache-dir", folder]);
        for call in calls {
            let Output { stdout, stderr, .. } = call.wait_with_output().unwrap();
            let line: Value = serde_json::from_slice(&stdout).expect("a line");
            assert_eq!(line["receipt"]["outcome"], "ok", "{line} {}", String::from_utf8_lossy(&stderr));
        }
        let pruned = prune.wait_with_output().unwrap();
        assert!(pruned.status.success(), "{pruned:?}");
    };
    for _ in 0..4 {
        together(&limit);
    }
    compile(&cribs[0], 3, &["--max-cache", &limit]);
    assert!(total(&cache) <= limit.parse().unwrap());
    let cleared = cribs[0].run(&["cache", "clear", &format!("--set=cache.dir={folder}")]);
    assert!(cleared.stderr.starts_with("removed "));
    together("1");
    assert!(compiled(&cache).is_empty());
    let left: Vec<_> = fs::read_dir(&cache).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the key and the lock: {left:?}");
}

#[test]
fn a_cache_that_cannot_be_used_never_fails_a_call() {
    let crib = crib(&program(1));
    fs::write(crib.path("file"), "no folder").unwrap();
    for folder in ["file", "file/cache"] {
        let flags = ["--cache-dir", folder, "--set", "cache.max=1"];
        assert_eq!(crib.outcome("n", &json!({}), &flags), "ok", "{folder}");
    }
    assert_eq!(fs::read_to_string(crib.path("file")).unwrap(), "no folder");
    // A folder with the name of the entry.
    let entry = compile(&crib, 1, &[]).expect("an entry");
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    for _ in 0..2 {
        assert_eq!(compile(&crib, 1, &["--set", "cache.max=1"]), None);
    }
    assert!(entry.is_dir());
    // A folder with the name of the lock: the limit holds all the same.
    fs::remove_file(crib.path("cache/lock")).unwrap();
    fs::create_dir(crib.path("cache/lock")).unwrap();
    compile(&crib, 2, &[]).expect("an entry");
    compile(&crib, 3, &["--set", "cache.max=1"]);
    assert!(compiled(&crib.path("cache")).iter().all(|path| path.is_dir()));
}

#[cfg(unix)]
#[test]
fn a_folder_without_rights_never_fails_a_call_and_a_link_stays() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let crib = crib(&program(1));
    let entry = compile(&crib, 1, &[]).expect("an entry");
    set_used(&entry, 5);
    let allow = |mode| fs::set_permissions(crib.path("cache"), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o500, 0o000, 0o777] {
        allow(mode);
        for number in [1, 2] {
            fs::write(crib.path("tools/bin/n.wasm"), program(number)).unwrap();
            assert_eq!(called(&crib, &["--set", "cache.max=1"]).0, "ok", "{mode:o}");
        }
    }
    allow(0o700);
    compile(&crib, 1, &[]);
    fs::remove_file(&entry).unwrap();
    fs::write(crib.path("outside"), "of the person").unwrap();
    symlink(crib.path("outside"), &entry).unwrap();
    assert_eq!(compile(&crib, 1, &[]), None, "an entry replaces no link");
    crib.run(&["cache", "clear", "--set", "cache.dir=cache"]);
    assert!(entry.is_symlink());
    assert_eq!(fs::read_to_string(crib.path("outside")).unwrap(), "of the person");
}
