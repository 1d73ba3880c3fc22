//! Folders that are swapped for links between the check and the opening, and the same folder under other names: the
//! granted folder is the checked one, under the name in the grant.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Audit, Policy, Runtime, ToolCall};

use super::race::Swapping;
use crate::crib::{Crib, TOOLCRIB, nesting, target};
use crate::screen::Page;

/// Default rounds of a race. `TOOLCRIB_TEST_ROUNDS=10000` runs the promised number.
const DEFAULT_ROUNDS: usize = 300;
/// Maximum tries until a race has ended in each way.
const MAX_TRIES: usize = 20_000;

/// Results of the rounds of a race.
#[derive(Debug, Default)]
struct Ends {
    granted: usize,
    refused: usize,
    other: usize,
}

fn rounds() -> usize {
    std::env::var("TOOLCRIB_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(DEFAULT_ROUNDS)
}

/// Creates a crib in which `work` and `state` each hold a file with their name.
fn marked() -> Crib {
    let crib = Crib::with_guests(&["file_io"]);
    fs::create_dir_all(crib.path("state/inner")).unwrap();
    fs::create_dir_all(crib.path("work/inner")).unwrap();
    for folder in ["work", "state", "work/inner", "state/inner"] {
        let name = folder.split('/').next().unwrap();
        fs::write(crib.path(folder).join("marker"), name).unwrap();
    }
    crib
}

/// Swaps `spot`, which is a folder, and a link to `state`.
fn swapping(crib: &Crib, spot: &str, to: &str) -> Swapping {
    let (spot, aside, link) = (crib.path(spot), crib.path("aside"), crib.path("link"));
    symlink(crib.path(to), &link).unwrap();
    Swapping::start(move || {
        fs::rename(&spot, &aside).unwrap();
        fs::rename(&link, &spot).unwrap();
        fs::rename(&spot, &link).unwrap();
        fs::rename(&aside, &spot).unwrap();
    })
}

/// Grants and calls repeatedly while the folder is swapped, and counts the contents that the guest could read.
fn raced(crib: &Crib, build: impl Fn() -> Result<Runtime, toolcrib::Error>) -> Ends {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut ends = Ends::default();
    let whole = crib.dir.path().canonicalize().unwrap();
    let real = ["work", "aside"].map(|name| whole.join(name));
    for round in 0..MAX_TRIES {
        match build() {
            Err(error) => {
                let output = error.to_string();
                assert!(!output.contains("panicked"), "{output}");
                ends.refused += 1;
            }
            Ok(runtime) => {
                let call = ToolCall::new("", "file_io", json!({"op": "read", "path": "marker"}).to_string());
                let answer = tokio.block_on(nesting::call(&runtime, call)).content().into_owned();
                let granted = runtime.grant("file_io").unwrap().folders().first().map(|folder| folder.host.clone());
                let named = granted.is_none_or(|host| real.iter().any(|real| host.starts_with(real)));
                match answer.as_str() {
                    r#"{"ok":"work"}"# if named => ends.granted += 1,
                    // A denial leaves no folder at all.
                    text if text.contains("no folder is granted") => ends.refused += 1,
                    _ => ends.other += 1,
                }
            }
        }
        if round + 1 >= rounds() && ends.granted > 0 && ends.refused > 0 {
            break;
        }
    }
    eprintln!("{ends:?}");
    assert_eq!(ends.other, 0, "{ends:?}");
    assert!(ends.granted > 0 && ends.refused > 0, "{ends:?}");
    ends
}

fn runtime(crib: &Crib, policy: Policy) -> toolcrib::Builder {
    let cache = target().join("test-cache");
    nesting::builder(Audit::off()).trusted_source(crib.path("tools.json")).policy(policy).compile_cache(cache)
}

#[test]
fn a_folder_swapped_for_a_link_to_the_hosts_own_state_is_never_granted() {
    let crib = marked();
    let _swapping = swapping(&crib, "work", "state");
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    raced(&crib, || runtime(&crib, policy.clone()).audit(Audit::folder(crib.path("state"))).build());
}

#[test]
fn a_folder_swapped_for_a_link_to_a_denied_folder_is_never_granted() {
    let crib = marked();
    let _swapping = swapping(&crib, "work", "state");
    let policy = Policy::default().allow(Permission::Read(crib.path("work")));
    let policy = policy.deny(Permission::Read(crib.path("state")));
    raced(&crib, || runtime(&crib, policy.clone()).build());
}

#[test]
fn a_folder_on_the_way_swapped_for_a_link_leads_to_nothing_denied() {
    let crib = marked();
    let _swapping = swapping(&crib, "work", "state");
    let policy = Policy::default().allow(Permission::Read(crib.path("work/inner")));
    let policy = policy.deny(Permission::Read(crib.path("state")));
    raced(&crib, || runtime(&crib, policy.clone()).build());
}

#[test]
fn a_folder_that_a_manifest_names_is_never_another_while_it_is_swapped() {
    let crib = marked();
    let entry =
        json!({"name": "file_io", "command": ["./tools/bin/file_io"], "capabilities": {"files": {"read": ["work"]}}});
    crib.manifest(&json!({ "tools": [entry] }));
    let _swapping = swapping(&crib, "work", "state");
    raced(&crib, || runtime(&crib, Policy::default()).build());
}

/// Answer of one call of `file_io` with `policy`.
fn answer(builder: toolcrib::Builder, arguments: &Value) -> String {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return error.to_string(),
    };
    tokio.block_on(nesting::call(&runtime, ToolCall::new("", "file_io", arguments.to_string()))).content().into_owned()
}

#[test]
fn own_state_is_granted_under_no_other_name() {
    let crib = marked();
    symlink(crib.path("state"), crib.path("alias")).unwrap();
    symlink("alias/inner", crib.path("second")).unwrap();
    for name in ["alias", "second", "state", "state/inner", "work/../state", "."] {
        let policy = Policy::default().allow(Permission::Read(crib.path(name)));
        let builder = runtime(&crib, policy).audit(Audit::folder(crib.path("state")));
        let output = answer(builder, &json!({"op": "roots"}));
        assert!(output.contains("would let a tool reach the audit log"), "{name}: {output}");
        let policy = Policy::default().allow(Permission::Read(crib.path(name)));
        let builder = runtime(&crib, policy).audit(Audit::folder(crib.path("second/../audit")));
        let output = answer(builder, &json!({"op": "roots"}));
        let holds = matches!(name, "alias" | "state" | "work/../state" | ".");
        assert_eq!(output.contains("would let a tool reach the audit log"), holds, "{name}: {output}");
    }
}

#[test]
fn a_file_of_the_hosts_own_is_not_read_by_a_hard_link_to_it() {
    let crib = marked();
    fs::write(crib.path("state/own"), "canary").unwrap();
    fs::hard_link(crib.path("state/own"), crib.path("work/link")).unwrap();
    fs::hard_link(crib.path("work/marker"), crib.path("work/other")).unwrap();
    let read = |path: &str, op: &str| {
        let policy = Policy::default().allow(Permission::Write(crib.path("work")));
        let builder = runtime(&crib, policy).audit(Audit::folder(crib.path("state")));
        answer(builder, &json!({"op": op, "path": path, "text": "x"}))
    };
    for op in ["read", "write", "append", "truncate", "open_for_write", "set_times"] {
        assert_eq!(read("link", op), r#"{"error":"not-permitted"}"#, "{op}");
    }
    assert_eq!(read("other", "read"), r#"{"ok":"work"}"#, "any other file with two names is a file");
    assert_eq!(fs::read_to_string(crib.path("state/own")).unwrap(), "canary");
}

#[test]
fn a_denied_folder_is_denied_under_its_other_names() {
    let crib = marked();
    symlink("state", crib.path("alias")).unwrap();
    for (allowed, denied) in
        [("state", "alias"), ("alias", "state"), ("alias/inner", "state"), ("state/inner", "alias")]
    {
        let policy = Policy::default().allow(Permission::Read(crib.path(allowed)));
        let policy = policy.deny(Permission::Read(crib.path(denied)));
        assert_eq!(answer(runtime(&crib, policy), &json!({"op": "roots"})), r#"{"ok":[]}"#, "{allowed} {denied}");
    }
}

/// Default paths of the program's own files in the crib's home.
fn defaults(crib: &Crib) -> [PathBuf; 4] {
    let state = crib.path("home/.local/state/toolcrib");
    [state.join("audit"), state.join("results"), state, crib.path("home/.cache/toolcrib")]
}

#[test]
fn the_default_places_are_never_granted_while_flags_name_others() {
    let page = Page::new();
    let crib = marked();
    for folder in defaults(&crib) {
        fs::create_dir_all(&folder).unwrap();
        let granted: [&Path; 2] = [&folder, folder.parent().unwrap()];
        for folder in granted {
            page.run(&crib, &["call", "file_io", "{}", &format!("--allow-read={}", folder.display())]);
        }
    }
    page.matches("files/default-places");
}

#[test]
fn own_state_is_not_granted_through_a_bind_mount() {
    let crib = marked();
    fs::create_dir_all(crib.path("other")).unwrap();
    let like = crib.toolcrib(&[]);
    for (mounted, on, granted) in
        [("audit", "other", "other"), ("audit/sub", "other", "other"), ("audit/sub", "work/inner", "work")]
    {
        fs::create_dir_all(crib.path("audit/sub")).unwrap();
        let script =
            format!(r#"mount --bind {mounted} {on} || exit 77; exec "$0" call file_io '{{}}' --allow-read={granted}"#);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(TOOLCRIB).current_dir(crib.dir.path()).env_clear();
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output();
        let told = ran.as_ref().map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned()).unwrap_or_default();
        if ran.is_err() || told.starts_with("unshare") || ran.is_ok_and(|ran| ran.status.code() == Some(77)) {
            eprintln!("skipped: no right to mount here");
            return;
        }
        assert!(told.contains("would let a tool reach the audit log"), "{mounted} {on}: {told}");
    }
}
