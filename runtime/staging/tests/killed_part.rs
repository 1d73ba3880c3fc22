//! Kills within a part's commit. The test is alone in its process: a new process holds the locks of others for a moment.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{Op, Pair, commit, dump};
use toolcrib_staging::Stages;

/// Variable that names the stages for a process that commits a part.
const COMMITTED: &str = "TOOLCRIB_TEST_STAGE_WITH_PART";

#[test]
fn a_kill_at_any_moment_of_a_part_loses_nothing() {
    if let Some(stages) = std::env::var_os(COMMITTED) {
        let stage = Stages::new(stages).take("one").unwrap();
        let changes = stage.changes().unwrap();
        let every_other: Vec<_> = changes.into_iter().step_by(2).collect();
        let part = stage.part(&every_other).unwrap();
        commit(&part).unwrap();
        return;
    }
    let mut interrupted = 0;
    for attempt in 0..100_u64 {
        let mut pair = Pair::new();
        for (number, path) in ["x", "a/x", "c/x", "new-1", "new-2", "new-3", "new-4", "a/new"].into_iter().enumerate() {
            pair.apply(number, &Op::Write(path.into(), "new".into()));
        }
        pair.apply(8, &Op::Remove("c/a/b".into()));
        pair.apply(9, &Op::Rename("a".into(), "moved".into()));
        pair.apply(10, &Op::Rename("c".into(), "a".into()));
        pair.apply(11, &Op::RemoveFolder("empty".into()));
        let shown = pair.staged();
        pair.close();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_kill_at_any_moment_of_a_part_loses_nothing"])
            .env(COMMITTED, pair.stages.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The first kills are while the part is made.
        let (done, steps) = (pair.stages.path().join("one/part/done"), attempt % 10);
        let is_there = || match steps {
            0 => pair.stages.path().join("one/part").exists(),
            _ => fs::metadata(&done).is_ok_and(|found| found.len() >= steps),
        };
        while child.try_wait().unwrap().is_none() && !is_there() {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let stage = Stages::new(pair.stages.path()).take("one").unwrap();
        if stage.is_committing() {
            interrupted += 1;
            assert!(commit(&stage).unwrap().left > 0);
        }
        drop(stage);
        pair.reopen();
        assert_eq!(pair.staged(), shown, "{attempt}");
        commit(&pair.stage).unwrap();
        assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()), "{attempt}");
    }
    assert!(interrupted > 20, "{interrupted} of 100 commits were interrupted");
}
