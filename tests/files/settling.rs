//! Files in a writable folder that later sessions follow: tools can read them and cannot change them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Builder, Policy, ToolCall};

use super::{crib, denied, ends};
use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

/// Returns a function that calls `file_io` with a folder granted for writing.
fn writing(crib: &Crib, folder: &str, with: impl FnOnce(Builder) -> Builder) -> impl Fn(&str, &str, &str) -> Value {
    let policy = Policy::default().allow(Permission::Write(crib.path(folder)));
    let runtime = with(nesting::builder(toolcrib::Audit::off())).policy(policy).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    move |op, path, to| {
        let call = ToolCall::new("", "file_io", json!({"op": op, "path": path, "to": to, "text": "x"}).to_string());
        serde_json::from_str(&tokio.block_on(nesting::call(&runtime, call)).content()).unwrap()
    }
}

fn refused(act: impl Fn(&str, &str, &str) -> Value, op: &str, path: &str, to: &str) {
    assert_eq!(act(op, path, to), json!({"error": "not-permitted"}), "{op} {path} {to}");
}

/// Every operation that changes an existing name.
const CHANGES: [&str; 8] =
    ["write", "append", "truncate", "set_size", "open_for_write", "write_far", "stream_far", "remove"];

#[test]
fn the_sources_of_later_sessions_are_written_by_no_tool() {
    let crib = crib(&["file_io"]);
    let manifest = fs::read(crib.path("tools.json")).unwrap();
    let program = fs::read(crib.path("tools/bin/file_io.wasm")).unwrap();
    fs::create_dir_all(crib.path("sub/.harness/tools")).unwrap();
    for file in ["sub/tools.json", "sub/.harness/tools/a.md", "note", "toolcrib.toml", "toolcrib.lock"] {
        fs::write(crib.path(file), "before").unwrap();
    }
    let act = writing(&crib, ".", |builder| builder.trusted_source(crib.path("tools.json")));
    for file in [
        "tools.json",
        "tools/bin/file_io.wasm",
        "sub/tools.json",
        "sub/.harness/tools/a.md",
        "toolcrib.toml",
        "toolcrib.lock",
    ] {
        for op in CHANGES {
            refused(&act, op, file, "");
        }
        refused(&act, "rename", file, "moved");
        refused(&act, "rename", "note", file);
        refused(&act, "hard_link", file, "linked");
        assert!(act("read", file, "")["ok"].is_string(), "{file} can be read");
    }
    for (op, path, to) in [
        ("write", "harness.md", ""),
        ("open_new", "work/toolcrib.toml", ""),
        ("write", "sub/.harness/tools/new.md", ""),
        ("mkdir", ".harness", ""),
        ("mkdir", "sub/.harness/hooks", ""),
        ("symlink", "harness.md", "note"),
        ("symlink", "work/.harness", "folder"),
        ("hard_link", "note", "work/tools.json"),
        ("rename", "note", "work/Tools.JSON"),
        ("rename", "work", "sub/.harness/work"),
        ("rename", "tools", "moved"),
        ("rename", "tools/bin", "moved"),
        ("rename", "tools/", "moved"),
        ("rename", "sub", "moved"),
        ("write", "work/TOOLCRIB.toml", ""),
        ("write", "work/./../harness.md", ""),
    ] {
        refused(&act, op, path, to);
    }
    for link in
        [("l", "tools.json"), ("dangling", "harness.md"), ("work/up", "../toolcrib.toml"), ("to_bin", "tools/bin")]
    {
        assert_eq!(act("symlink", link.0, link.1), json!({"ok": null}), "{link:?}");
    }
    for path in ["l", "dangling", "work/up", "to_bin/file_io.wasm"] {
        refused(&act, "write", path, "");
    }
    for (op, path, to) in [("write", "work/fresh", ""), ("rename", "note", "work/tools.json5"), ("mkdir", "made", "")] {
        assert!(act(op, path, to).get("ok").is_some(), "{op} {path}: anything else is as it was");
    }
    assert_eq!(fs::read(crib.path("tools.json")).unwrap(), manifest);
    assert_eq!(fs::read(crib.path("tools/bin/file_io.wasm")).unwrap(), program);
    assert_eq!(fs::read_to_string(crib.path("toolcrib.toml")).unwrap(), "before");
    assert!(!crib.path("harness.md").exists() && !crib.path(".harness").exists());
}

#[test]
fn what_editors_shells_and_version_control_follow_is_written_by_no_tool() {
    let crib = crib(&["file_io"]);
    for folder in ["hooks", "objects", "modules/x"].map(|folder| format!("work/.git/{folder}")) {
        fs::create_dir_all(crib.path(folder)).unwrap();
    }
    for folder in ["work/.vscode", "work/plain/hooks", "work/sub", "work/.config", "work/mise", "work/.hg"] {
        fs::create_dir_all(crib.path(folder)).unwrap();
    }
    fs::write(crib.path("work/.git/config"), "before").unwrap();
    let act = writing(&crib, "work", |builder| builder.trusted_source(crib.path("tools.json")));
    for (op, path, to) in [
        ("write", ".git/hooks/pre-commit", ""),
        ("write", ".git/config", ""),
        ("rename", "note", ".git/config"),
        ("rename", ".git", "elsewhere"),
        ("rename", "plain", "sub/.git"),
        ("rename", ".git/hooks", "away"),
        ("mkdir", "folder/.git", ""),
        ("write", "folder/.git", ""),
        ("symlink", ".git/hooks/post-merge", "../../note"),
        ("write", ".git/modules/x/config", ""),
        ("write", ".envrc", ""),
        ("write", "folder/mise.toml", ""),
        ("symlink", ".mise.toml", "note"),
        ("write", ".vscode/tasks.json", ""),
        ("mkdir", ".idea", ""),
        ("hard_link", "note", ".envrc"),
        ("hard_link", ".git/config", "mine"),
        ("mkdir", ".config/mise", ""),
        ("write", ".config/mise.toml", ""),
        ("write", "mise/config.toml", ""),
        ("write", "folder/.mise.local.toml", ""),
        ("write", ".hg/hgrc", ""),
        ("mkdir", ".zed", ""),
        ("write", "folder/all.code-workspace", ""),
    ] {
        refused(&act, op, path, to);
    }
    // On a case-sensitive file system, this path does not exist.
    assert!(act("append", ".GIT/config", "")["error"].is_string());
    assert!(act("write", ".git/objects/x", "").get("ok").is_some(), "a repository can be worked on");
    assert!(act("read", ".git/config", "").get("ok").is_some());
    assert_eq!(fs::read_to_string(crib.path("work/.git/config")).unwrap(), "before");
    assert_eq!(fs::read_dir(crib.path("work/.git/hooks")).unwrap().count(), 0);
}

#[test]
fn sources_with_names_of_their_own_and_links_to_them_are_written_by_no_tool() {
    let crib = crib(&["file_io"]);
    let at = |name: &str| crib.path("work").join(name);
    for folder in ["bin", "BIN", "loose"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::create_dir_all(at("deep/real")).unwrap();
    fs::copy(guest("echo"), at("bin/prog.wasm")).unwrap();
    fs::copy(guest("echo"), at("loose/second.wasm")).unwrap();
    let entry = json!({"name": "prog", "command": [at("bin/prog")]});
    fs::write(at("deep/real/own.json"), json!({ "tools": [entry] }).to_string()).unwrap();
    fs::write(at("deep/rules.toml"), "").unwrap();
    symlink("deep/real/own.json", at("own.json")).unwrap();
    symlink("deep/rules.toml", at("settings")).unwrap();
    fs::hard_link(at("bin/prog.wasm"), at("other_name")).unwrap();
    let sources = |builder: Builder| {
        builder
            .trusted_source(crib.path("tools.json"))
            .source(at("own.json"))
            .source(at("loose"))
            .protect(at("settings"))
            .protect(at("not/there/yet"))
    };
    let act = writing(&crib, "work", sources);
    for (op, path, to) in [
        ("write", "own.json", ""),
        ("remove", "own.json", ""),
        ("rename", "note", "own.json"),
        ("write", "deep/real/own.json", ""),
        ("rename", "deep/real/own.json", "x"),
        ("rename", "deep", "x"),
        ("rename", "deep/real", "x"),
        ("write", "bin/prog.wasm", ""),
        ("write", "BIN/../bin/prog.wasm", ""),
        ("rename", "bin", "x"),
        ("write", "other_name", ""),
        ("truncate", "other_name", ""),
        ("hard_link", "other_name", "third"),
        ("write", "loose/new.wasm", ""),
        ("rename", "note", "loose/New.MD"),
        ("write", "loose/new.tool.json", ""),
        ("rename", "loose", "x"),
        ("write", "settings", ""),
        ("remove", "settings", ""),
        ("write", "deep/rules.toml", ""),
        ("rename", "deep/rules.toml", "x"),
        ("mkdir", "not", ""),
    ] {
        refused(&act, op, path, to);
    }
    assert!(act("write", "loose/notes.txt", "").get("ok").is_some());
    assert_eq!(fs::read(at("bin/prog.wasm")).unwrap(), fs::read(guest("echo")).unwrap());
}

#[test]
fn a_project_that_is_a_link_is_written_by_no_tool_where_it_leads() {
    let crib = crib(&["file_io"]);
    fs::create_dir_all(crib.path("work/shared/tools")).unwrap();
    symlink("work/shared", crib.path(".harness")).unwrap();
    let act = writing(&crib, "work", |builder| builder.source(crib.path(".")));
    for (op, path, to) in [
        ("write", "shared/tools/new.md", ""),
        ("mkdir", "shared/hooks", ""),
        ("rename", "shared", "x"),
        ("rename", "note", "shared/harness.md"),
    ] {
        refused(&act, op, path, to);
    }
}

#[test]
fn no_link_and_no_moved_folder_gets_a_name_below_which_names_settle_something() {
    let crib = crib(&["file_io"]);
    fs::create_dir_all(crib.path("work/foo/mise")).unwrap();
    fs::create_dir_all(crib.path("work/empty")).unwrap();
    let act = writing(&crib, "work", |builder| builder.trusted_source(crib.path("tools.json")));
    assert_eq!(act("symlink", "l", "foo"), json!({"ok": null}));
    for (op, path, to) in [
        ("symlink", ".config", "foo"),
        ("symlink", "folder/.Config", "../foo"),
        ("symlink", ".git", "foo"),
        ("symlink", "mise", "foo"),
        ("symlink", ".hg", "empty"),
        ("rename", "foo", ".config"),
        ("rename", "empty", ".config"),
        ("rename", "empty", "folder/mise"),
        ("rename", "l", ".config"),
        ("hard_link", "l", ".config"),
    ] {
        refused(&act, op, path, to);
    }
    for (op, path, to) in [("mkdir", ".config", ""), ("write", ".config/other.toml", ""), ("rename", ".config", "x")] {
        assert!(act(op, path, to).get("ok").is_some(), "{op} {path}: it settles nothing by itself");
    }
}

#[test]
fn a_link_of_the_operators_is_no_way_round_a_name_that_settles_something() {
    let crib = crib(&["file_io"]);
    for folder in [".git", ".githooks", "conf", "dotfiles", "config/mise", "inner"] {
        fs::create_dir_all(crib.path("work").join(folder)).unwrap();
    }
    for (target, link) in [
        ("../.githooks", ".git/hooks"),
        ("conf", ".vscode"),
        ("dotfiles/envrc", ".envrc"),
        ("config", ".config"),
        ("../conf", "inner/.idea"),
    ] {
        symlink(target, crib.path("work").join(link)).unwrap();
    }
    // A link above the granted folder leads into it.
    symlink("work/folder", crib.path(".zed")).unwrap();
    let act = writing(&crib, "work", |builder| builder.trusted_source(crib.path("tools.json")));
    for (op, path, to) in [
        ("write", ".git/hooks/pre-commit", ""),
        ("write", ".githooks/pre-commit", ""),
        ("open_new", ".git/hooks/pre-commit", ""),
        ("rename", "note", ".git/hooks/pre-commit"),
        ("hard_link", "note", ".git/hooks/pre-commit"),
        ("symlink", ".git/hooks/pre-commit", "note"),
        ("mkdir", ".vscode/x", ""),
        ("write", ".vscode/tasks.json", ""),
        ("write", "conf/tasks.json", ""),
        ("write", "inner/.idea/tasks.xml", ""),
        ("rename", "conf", "x"),
        ("write", ".envrc", ""),
        ("write", "dotfiles/envrc", ""),
        ("write", ".config/mise/config.toml", ""),
        ("write", "config/mise/config.toml", ""),
        ("write", "folder/tasks.json", ""),
    ] {
        refused(&act, op, path, to);
    }
    for path in ["dotfiles/other", "config/other", ".config/more", "inner/note"] {
        assert!(act("write", path, "").get("ok").is_some(), "{path}: anything else is as it was");
    }
    assert_eq!(fs::read_dir(crib.path("work/.githooks")).unwrap().count(), 0);
}

#[test]
fn a_program_that_was_replaced_since_is_written_by_no_tool() {
    let crib = crib(&["file_io"]);
    let act =
        writing(&crib, ".", |builder| builder.trusted_source(crib.path("tools.json")).protect(crib.path("settings")));
    let built = fs::read(guest("echo")).unwrap();
    for (place, name) in [("fresh.wasm", "tools/bin/echo.wasm"), ("fresh", "settings")] {
        fs::write(crib.path(place), &built).unwrap();
        // As a build with two names for its product does.
        fs::hard_link(crib.path(place), crib.path(format!("other_{place}"))).unwrap();
        fs::rename(crib.path(place), crib.path(name)).unwrap();
        for op in CHANGES {
            refused(&act, op, name, "");
        }
        refused(&act, "write", &format!("other_{place}"), "");
        refused(&act, "hard_link", &format!("other_{place}"), "third");
        assert_eq!(fs::read(crib.path(name)).unwrap(), built, "{name}");
    }
    for number in 0..20 {
        // One of them may get the number of a file that was replaced.
        assert!(act("write", &format!("work/{number}"), "").get("ok").is_some(), "{number}");
    }
}

#[test]
fn no_program_is_made_that_a_later_session_would_take_for_that_of_a_tool() {
    let crib = crib(&["file_io"]);
    fs::copy(guest("echo"), crib.path("tools/bin/plain")).unwrap();
    fs::copy(guest("echo"), crib.path("tools/bin/other.exe")).unwrap();
    fs::create_dir_all(crib.path("elsewhere")).unwrap();
    fs::copy(guest("echo"), crib.path("elsewhere/far")).unwrap();
    let io = json!({"name": "file_io", "command": ["./tools/bin/file_io"]});
    let entry = |name: &str, program: &str| json!({"name": name, "command": [program]});
    let far = crib.path("elsewhere/far").to_string_lossy().into_owned();
    let faulty = json!({"name": "faulty", "command": ["./tools/bin/faulty"], "timeoutSec": "soon"});
    let (plain, other) = (entry("plain", "./tools/bin/plain"), entry("other", "./tools/bin/other.exe"));
    crib.manifest(&json!({"tools": [io, plain, other, entry("far", &far), faulty]}));
    let act = writing(&crib, ".", |builder| builder.trusted_source(crib.path("tools.json")));
    for program in ["tools/bin/plain", "tools/bin/plain.wasm", "tools/bin/other.wasm", "elsewhere/far.wasm"] {
        refused(&act, "write", program, "");
        refused(&act, "rename", "work/note", program);
    }
    refused(&act, "write", "tools/bin/faulty.wasm", "");
    refused(&act, "mkdir", "tools/bin/faulty.wasm", "");
    for path in ["elsewhere/near.wasm", "tools/notes"] {
        assert!(act("write", path, "").get("ok").is_some(), "{path}: anything else is as it was");
    }
}

#[test]
fn a_write_that_would_settle_something_is_recorded_and_explained() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    let arguments = json!({"op": "write", "path": "tools.json", "text": "{}"});
    let line = ends(&crib, "file_io", arguments.clone(), &["--allow-write=work"], "ok");
    assert_eq!(
        (&line["result"]["error"], denied(&line)),
        (&json!("not-permitted"), vec!["write:tools.json"]),
        "{line}"
    );
    assert_eq!(line["receipt"]["denied"], json!([{"capability": "write:tools.json"}]), "no flag would help: {line}");
    page.run(&crib, &["call", "file_io", &arguments.to_string(), "--allow-write=work", "--verbose"]);
    let arguments = json!({"op": "rename", "path": "note", "to": "folder/../.envrc"});
    assert_eq!(denied(&ends(&crib, "file_io", arguments, &["--allow-write=work"], "ok")), ["write:folder/../.envrc"]);
    page.matches("files/settled");
}

#[test]
fn names_that_start_something_by_themselves_are_written_by_no_tool_and_their_times_stay() {
    let crib = crib(&["file_io"]);
    let files = [
        ".hg/hgrc",
        ".hg/hgrc-not-shared",
        ".hg/sharedpath",
        ".hg/requires",
        ".jj/repo/config.toml",
        ".sl/config",
        ".svn/hooks/pre-commit",
        ".git/hooks/pre-commit",
        "sub/.envrc",
        "mise.staging.local.toml",
        ".config/mise/conf.d/all.toml",
        ".claude/settings.local.json",
        "sub/CLAUDE.md",
        ".cursor/mcp.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".mcp.json",
        "opencode.jsonc",
        ".opencode/opencode.json",
        "crush.json",
        ".crush.json",
        "AGENTS.md",
        ".github/copilot-instructions.md",
        ".nvim.lua",
        ".dir-locals.el",
        ".devcontainer/devcontainer.json",
        ".bashrc",
        ".tool-versions",
    ];
    for file in files {
        let path = crib.path("work").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "before").unwrap();
    }
    fs::write(crib.path("work/plain"), "before").unwrap();
    symlink("mise.staging.local.toml", crib.path("work/link")).unwrap();
    let act = writing(&crib, "work", |builder| builder.trusted_source(crib.path("tools.json")));
    for file in files {
        for op in CHANGES.into_iter().chain(["set_times", "set_times_of_name", "set_times_of_open"]) {
            refused(&act, op, file, "");
        }
        refused(&act, "rename", "plain", file);
        assert_eq!(fs::read_to_string(crib.path("work").join(file)).unwrap(), "before", "{file}");
    }
    // The link has another name; its target has not.
    refused(&act, "set_times", "link", "");
    refused(&act, "set_times_of_open", "link", "");
    for op in ["set_times", "set_times_of_name", "set_times_of_open"] {
        assert_eq!(act(op, "plain", ""), json!({"ok": null}), "{op}");
    }
    // What somebody runs on purpose is written.
    for file in ["Makefile", ".github/workflows/ci.yml", "notes/agents.txt", "mise.md", ".env", ".gitignore"] {
        let path = crib.path("work").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(act("write", file, "").get("ok").is_some(), "{file}");
    }
}
