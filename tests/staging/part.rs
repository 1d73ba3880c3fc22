//! Commits of some of the changes by the command line: the others stay in the stage.

use std::fs;

use serde_json::{Value, json};

use super::{call, stage, written};
use crate::crib::Crib;
use crate::permissions::terminal::Terminal;

/// Stages a new content for each of three files.
fn filled() -> Crib {
    let crib = Crib::new();
    for name in ["a.md", "b.md", "c.txt"] {
        fs::write(crib.path("work").join(name), "old").unwrap();
        call(&crib, "fs_write_file", &json!({"path": name, "content": "new"}));
    }
    crib
}

fn contents(crib: &Crib) -> [String; 3] {
    ["a.md", "b.md", "c.txt"].map(|name| written(crib, name).unwrap())
}

/// Lists the changes of the stage, one line each.
fn listed(crib: &Crib) -> Vec<String> {
    stage(crib, &["diff", "one", "--stat"]).lines().map(str::to_owned).collect()
}

#[test]
fn some_paths_are_committed_and_the_others_later() {
    let crib = filled();
    let ran = crib.run(&["stage", "commit", "one", "work/a.md", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("committed 1 change of `one`: 1 step; 2 changes stay in it"), "{ran:?}");
    assert_eq!(contents(&crib), ["new", "old", "old"]);
    assert_eq!(listed(&crib).len(), 2);
    assert_eq!(call(&crib, "fs_read_file", &json!({"path": "b.md"}))["content"], "new", "the stage goes on");
    call(&crib, "fs_write_file", &json!({"path": "a.md", "content": "newer"}));
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!(contents(&crib), ["newer", "new", "new"]);
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n");
}

#[test]
fn a_pattern_or_a_call_chooses_what_is_committed() {
    let crib = filled();
    let committed = stage(&crib, &["commit", "one", "work/*.md", "--yes", "--json"]);
    let committed: Value = serde_json::from_str(&committed).unwrap();
    assert_eq!((&committed["staged"], &committed["name"]), (&json!(1), &json!("one")), "{committed}");
    assert_eq!(contents(&crib), ["new", "new", "old"]);
    call(&crib, "fs_rm", &json!({"path": "a.md"}));
    stage(&crib, &["commit", "one", "--call=fs_rm", "--yes"]);
    assert_eq!((written(&crib, "a.md"), written(&crib, "c.txt").as_deref()), (None, Some("old")));
    let ran = crib.run(&["stage", "commit", "one", "work/c.txt", "--yes"]);
    assert!(ran.stderr.contains("committed `one`: 1 step\n"), "all that was left: {ran:?}");
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n");
}

#[test]
fn a_new_folder_goes_along_with_a_file_in_it_and_nothing_else_of_it() {
    let crib = Crib::new();
    call(&crib, "fs_mkdirp", &json!({"path": "new/inner"}));
    for name in ["new/inner/a", "new/inner/b", "new/c"] {
        call(&crib, "fs_write_file", &json!({"path": name, "content": name}));
    }
    let ran = crib.run(&["stage", "commit", "one", "work/new/inner/a", "--yes"]);
    assert!(
        ran.stderr.contains("`work/new` goes along") && ran.stderr.contains("`work/new/inner` goes along"),
        "{ran:?}"
    );
    assert_eq!(written(&crib, "new/inner/a").as_deref(), Some("new/inner/a"));
    assert_eq!((written(&crib, "new/inner/b"), written(&crib, "new/c")), (None, None));
    assert_eq!(listed(&crib).len(), 2);
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!(written(&crib, "new/inner/b").as_deref(), Some("new/inner/b"));
}

/// Stages the move of a folder, and changes of both files in it.
fn moved() -> Crib {
    let crib = Crib::new();
    fs::create_dir(crib.path("work/old")).unwrap();
    for name in ["old/a", "old/b"] {
        fs::write(crib.path("work").join(name), "old").unwrap();
    }
    call(&crib, "fs_move", &json!({"from": "old", "to": "new"}));
    call(&crib, "fs_write_file", &json!({"path": "new/a", "content": "new"}));
    call(&crib, "fs_rm", &json!({"path": "new/b"}));
    crib
}

#[test]
fn a_file_in_a_moved_folder_is_committed_where_the_folder_is() {
    let crib = moved();
    let ran = crib.run(&["stage", "commit", "one", "work/new/a", "--yes"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("goes along"), "{ran:?}");
    assert_eq!((written(&crib, "old/a").as_deref(), written(&crib, "old/b").as_deref()), (Some("new"), Some("old")));
    assert_eq!(call(&crib, "fs_read_file", &json!({"path": "new/a"}))["content"], "new");
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!((written(&crib, "new/a").as_deref(), written(&crib, "new/b")), (Some("new"), None));
}

#[test]
fn a_moved_folder_leaves_the_changes_in_it_staged() {
    let crib = moved();
    stage(&crib, &["commit", "one", "--call=fs_move", "--yes"]);
    assert_eq!((written(&crib, "new/a").as_deref(), written(&crib, "new/b").as_deref()), (Some("old"), Some("old")));
    assert_eq!(listed(&crib), ["modified work/new/a", "removed work/new/b (3 bytes)"]);
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!((written(&crib, "new/a").as_deref(), written(&crib, "new/b")), (Some("new"), None));
}

#[test]
fn a_part_is_taken_back_by_the_name_of_the_stage() {
    let crib = filled();
    stage(&crib, &["commit", "one", "work/a.md", "--yes"]);
    let ran = crib.run(&["undo", "one", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(contents(&crib), ["old", "old", "old"]);
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!(contents(&crib), ["old", "new", "new"]);
}

#[test]
fn a_refusal_a_conflict_and_a_no_leave_everything() {
    let crib = filled();
    let folder = crib.path("home/.local/state/toolcrib/stages/one");
    let ran = crib.run(&["stage", "commit", "one", "work/a.md"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot ask: no terminal is available"), "{ran:?}");
    let ran = crib.run(&["stage", "commit", "one", "work/a.md", "--yes", "--skip"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("takes no PATH and no --call"), "{ran:?}");
    let ran = crib.run(&["stage", "commit", "one", "work/none", "--yes"]);
    assert!(ran.stderr.contains("no change is at `work/none`"), "{ran:?}");
    let mut terminal = Terminal::start(crib.toolcrib(&["stage", "commit", "one", "work/a.md", "work/b.md"]));
    let asked = terminal.until("Commit them? [y/N]");
    assert!(asked.contains("work/a.md") && !asked.contains("c.txt"), "{asked}");
    terminal.types("n\n");
    let left = terminal.end();
    assert!(left.code == Some(1) && left.terminal.contains("nothing was changed; `one` stays"), "{left:?}");
    fs::write(crib.path("work/b.md"), "others").unwrap();
    let ran = crib.run(&["stage", "commit", "one", "work/a.md", "work/b.md", "--yes"]);
    assert!(ran.stderr.contains("refused: `work/b.md`: others have changed it since"), "{ran:?}");
    assert_eq!(contents(&crib), ["old", "others", "old"]);
    assert_eq!(listed(&crib).len(), 3);
    assert!(!folder.join("part").exists());
    stage(&crib, &["commit", "one", "work/a.md", "--yes"]);
    assert_eq!(contents(&crib), ["new", "others", "old"], "a conflict of another change stops nothing");
}

#[test]
fn an_interrupted_commit_of_a_part_goes_on_by_the_name_of_the_stage() {
    let crib = filled();
    let folder = crib.path("home/.local/state/toolcrib/stages/one");
    fs::create_dir(folder.join("part")).unwrap();
    for name in ["contents", "nothing"] {
        fs::create_dir(folder.join("part").join(name)).unwrap();
    }
    fs::copy(folder.join("journal"), folder.join("part/journal")).unwrap();
    for entry in fs::read_dir(folder.join("contents")).unwrap() {
        let entry = entry.unwrap();
        fs::hard_link(entry.path(), folder.join("part/contents").join(entry.file_name())).unwrap();
    }
    fs::write(folder.join("part/steps"), r#"{"aside":".toolcrib-stage-0-","steps":[]}"#).unwrap();
    assert!(stage(&crib, &["list"]).contains("commit: 0 of 0 steps done"));
    let ran = crib.run(&["stage", "commit", "one", "work/a.md", "--yes"]);
    assert!(ran.stderr.contains("a commit has begun"), "{ran:?}");
    let ran = crib.run(&["stage", "commit", "one", "--yes"]);
    assert!(
        ran.stderr.contains("continuing the interrupted commit") && ran.stderr.contains("committed a part of `one`"),
        "{ran:?}"
    );
    assert!(!folder.join("part").exists());
    assert_eq!(listed(&crib).len(), 3, "no step was done, so nothing is lost");
}
