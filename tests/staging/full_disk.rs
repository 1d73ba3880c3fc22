//! Commands whose disk is full: they say so, change no file by half, and the next one goes on once there is room.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::{TOOLS, stage};
use crate::crib::Crib;

/// Variable of a process with mounts of its own.
const MOUNTS: &str = "TOOLCRIB_TEST_OWN_MOUNTS";

/// Runs a test in a process with mounts of its own, which end with it.
fn with_own_mounts(name: &str, test: impl FnOnce()) {
    if std::env::var_os(MOUNTS).is_some() {
        return test();
    }
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", r#"mount -t tmpfs none /mnt && umount /mnt || exit 77; exec "$0" "$@""#]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(MOUNTS, "1");
    match command.output() {
        Ok(ran) if ran.status.code() != Some(77) && !ran.stderr.starts_with(b"unshare") => {
            let said = [ran.stdout, ran.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        }
        _ => eprintln!("skipped: no right to mount here"),
    }
}

/// Folder on a disk of its own, of 1 MiB.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(&folder).status();
        assert!(mounted.unwrap().success());
        Self(folder)
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_tool_gets_an_error_from_a_full_stage_and_the_next_call_works() {
    with_own_mounts("staging::full_disk::a_tool_gets_an_error_from_a_full_stage_and_the_next_call_works", || {
        let crib = Crib::new();
        let disk = Disk::mount(crib.path("home/.local/state/toolcrib/stages"));
        fs::write(crib.path("work/kept.md"), "kept").unwrap();
        super::call(&crib, "fs_write_file", &json!({"path": "first.md", "content": "first"}));
        disk.fill();
        for path in ["large.md", "kept.md", "first.md"] {
            let large = "l".repeat(100_000);
            let line = crib.call("fs_write_file", &json!({"path": path, "content": large}), &TOOLS);
            assert_eq!(line["receipt"]["outcome"], "failed", "{line}");
            // A guest's library has no other word for an error of a stream.
            let said = line["error"].as_str().unwrap();
            assert!(said.contains(path) && said.to_lowercase().contains("i/o error"), "{line}");
            assert_eq!(fs::read_dir(crib.path("work")).unwrap().count(), 1);
        }
        // Without the option, and for reading, calls work as before.
        let read = crib.call("fs_read_file", &json!({"path": "kept.md"}), &TOOLS);
        assert_eq!(read["receipt"]["outcome"], "ok", "{read}");
        disk.make_room();
        super::call(&crib, "fs_write_file", &json!({"path": "last.md", "content": "last"}));
        // No part of a large text is among the changes.
        assert_eq!(
            stage(&crib, &["diff", "one", "--stat"]),
            "added work/first.md (5 bytes)\nadded work/last.md (4 bytes)\n"
        );
        stage(&crib, &["commit", "one", "--yes"]);
        let found = ["kept.md", "first.md", "last.md"].map(|name| text(&crib.path("work").join(name)));
        assert_eq!(found.map(Option::unwrap), ["kept", "first", "last"]);
    });
}

#[test]
fn a_commit_and_an_undo_into_a_full_disk_say_so_and_go_on() {
    with_own_mounts("staging::full_disk::a_commit_and_an_undo_into_a_full_disk_say_so_and_go_on", || {
        let crib = Crib::new();
        let disk = Disk::mount(crib.path("work"));
        let (old, new) = ("o".repeat(50_000), "n".repeat(60_000));
        for name in ["a.md", "b.md"] {
            fs::write(crib.path("work").join(name), &old).unwrap();
            super::call(&crib, "fs_write_file", &json!({"path": name, "content": new}));
        }
        let is = |content: &str| {
            ["a.md", "b.md"].map(|name| text(&crib.path("work").join(name)).as_deref() == Some(content))
        };
        let refused = |args: &[&str]| {
            let ran = crib.run(args);
            assert_eq!(ran.code, Some(1), "{ran:?}");
            let entries = fs::read_dir(crib.path("work")).unwrap().count();
            assert_eq!(entries, 3, "two files and what fills the disk: {ran:?}");
            assert!(ran.stderr.contains("No space left on device") && ran.stderr.contains("work/a.md"), "{ran:?}");
        };
        disk.fill();
        refused(&["stage", "commit", "one", "--yes"]);
        refused(&["stage", "commit", "one", "--yes"]);
        assert_eq!(is(&old), [true; 2]);
        assert!(stage(&crib, &["list"]).contains("commit: 0 of 2 steps done"));
        disk.make_room();
        stage(&crib, &["commit", "one", "--yes"]);
        assert_eq!(is(&new), [true; 2]);
        disk.fill();
        refused(&["undo", "--yes"]);
        assert_eq!(is(&new), [true; 2]);
        let said = crib.run(&["undo", "--yes"]).stderr;
        let name = said.split('`').find_map(|part| part.strip_prefix("toolcrib stage commit ")).unwrap().to_owned();
        disk.make_room();
        stage(&crib, &["commit", &name, "--yes"]);
        assert_eq!(is(&old), [true; 2]);
    });
}
