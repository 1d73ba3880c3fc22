//! Packing: the same bytes for the same content, nothing that no definition names, and a clear refusal of everything else.

use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use serde_json::{Value, json};

use crate::crib::Crib;
#[cfg(unix)]
use crate::crib::{Ran, TOOLCRIB};
use crate::screen::Page;

use super::{SIZE, crib, files, pack, packed};

/// Copies the sources of a crib to a folder, the last file first.
fn copy(crib: &Crib, to: &Path) {
    for name in [".env", "LICENSE", "tools.json", "tools/bin/env_dump.wasm", "tools/bin/echo.wasm"].iter().rev() {
        fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        fs::write(to.join(name), fs::read(crib.path(name)).unwrap()).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn equal_content_gives_an_equal_file_wherever_and_whenever_it_is_packed() {
    let crib = crib();
    let mut archives = Vec::new();
    for (folder, umask, zone, locale) in [("one", "022", "UTC", "C"), ("two/deep", "077", "Asia/Tokyo", "tr_TR.UTF-8")]
    {
        let folder = crib.path(folder);
        copy(&crib, &folder);
        let line = format!("umask {umask} && exec {TOOLCRIB} bundle pack ./tools.json -o {umask}.tar --json");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &line]).current_dir(&folder).env_clear().env("HOME", crib.path("home"));
        let ran = Ran::from(command.env("TZ", zone).env("LANG", locale).env("LC_ALL", locale).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said: Value = serde_json::from_str(&ran.stdout).unwrap();
        archives.push((said["digest"].clone(), fs::read(folder.join(format!("{umask}.tar"))).unwrap()));
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    assert!(archives[0] == archives[1], "{} {}", archives[0].0, archives[1].0);
}

#[test]
fn a_bundle_holds_what_its_sources_name_and_nothing_else() {
    let crib = crib();
    fs::write(crib.path("toolcrib.lock"), "{}").unwrap();
    fs::write(crib.path("tools/bin/unused.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let said = packed(&crib, "tools.json", "x.tar");
    assert_eq!(
        (&said["name"], &said["version"], &said["tools"]),
        (&json!("tools"), &json!("0.0.0"), &json!(["echo", "env_dump"]))
    );
    let expected =
        ["LICENSE", "sbom.cdx.json", "toolcrib.lock", "tools.json", "tools/bin/echo.wasm", "tools/bin/env_dump.wasm"];
    assert_eq!(files(&crib.path("x.tar")), expected);
    let text = fs::read(crib.path("x.tar")).unwrap();
    assert!(!text.windows(6).any(|bytes| bytes == b"canary"), "a file that no definition names");
}

#[test]
fn the_bill_names_tools_programs_with_digests_and_packages() {
    let crib = crib();
    packed(&crib, "tools.json", "x.tar");
    let mut bundle = toolcrib_bundle::Bundle::open(fs::File::open(crib.path("x.tar")).unwrap()).unwrap();
    let bill = bundle.read_file("sbom.cdx.json").unwrap().into_vec(1 << 20).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
    let components = bill["components"].as_array().unwrap();
    let find = |path: &str| components.iter().find(|part| part["properties"][0]["value"] == path);
    assert_eq!(find("tools.json").unwrap()["type"], "application");
    let digest = toolcrib::source::digest(&fs::read(crib.path("tools/bin/echo.wasm")).unwrap());
    let hash = &find("tools/bin/echo.wasm").unwrap()["hashes"][0]["content"];
    assert_eq!(format!("sha256:{}", hash.as_str().unwrap()), digest);
}

#[test]
fn several_sources_of_every_kind_make_one_bundle() {
    let crib = crib();
    let script = "---\nscript: |\n  def run(args):\n      return {\"hi\": 1}\n---\nSays hi.\n";
    fs::create_dir_all(crib.path("project/.harness/tools")).unwrap();
    fs::write(crib.path("project/.harness/tools/hi.md"), script).unwrap();
    fs::write(crib.path("alone.md"), script).unwrap();
    fs::copy(crib.path("tools/bin/echo.wasm"), crib.path("bare.wasm")).unwrap();
    let args =
        ["bundle", "pack", "tools.json", "project", "alone.md", "bare.wasm", "-o", "all.tar", "--name", "acme/all"];
    let ran = crib.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("all.tar: acme/all 0.0.0, 5 tools, "), "{ran:?}");
    let listed = crib.run(&["list", "--tools", "all.tar", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "env_dump", "hi", "alone", "bare"]);
    for tool in ["hi", "alone"] {
        let ran = crib.run(&["call", tool, "{}", "--tools", "all.tar"]);
        assert_eq!(
            (ran.code, ran.stdout.trim()),
            (Some(0), r#"{"hi":1}"#),
            "the interpreter is part of the program: {ran:?}"
        );
    }
    assert!(crib.run(&["call", "bare", "{}", "--tools", "all.tar"]).code == Some(0));
}

#[test]
fn a_program_outside_of_the_folder_of_its_source_is_refused_by_name() {
    let page = Page::new();
    let crib = crib();
    let program = crib.path("tools/bin/echo.wasm");
    fs::create_dir_all(crib.path("other")).unwrap();
    let manifest = json!({"tools": [{"name": "far", "command": [program]}]});
    fs::write(crib.path("other/tools.json"), manifest.to_string()).unwrap();
    let ran = pack(&crib, "other/tools.json", "x.tar");
    page.show(&ran);
    assert!(!crib.path("x.tar").exists());
    page.matches("bundle/outside");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_is_refused_and_one_inside_is_followed() {
    let page = Page::new();
    let crib = crib();
    fs::create_dir_all(crib.path("linked/tools/bin")).unwrap();
    fs::write(
        crib.path("linked/tools.json"),
        json!({"tools": [{"name": "a", "command": ["./tools/bin/a"]}]}).to_string(),
    )
    .unwrap();
    let link = crib.path("linked/tools/bin/a.wasm");
    std::os::unix::fs::symlink(crib.path("tools/bin/echo.wasm"), &link).unwrap();
    let ran = pack(&crib, "linked", "x.tar");
    page.show(&ran);
    fs::remove_file(&link).unwrap();
    fs::copy(crib.path("tools/bin/echo.wasm"), crib.path("linked/tools/bin/b.wasm")).unwrap();
    std::os::unix::fs::symlink("b.wasm", &link).unwrap();
    packed(&crib, "linked", "x.tar");
    assert_eq!(files(&crib.path("x.tar")), ["sbom.cdx.json", "tools.json", "tools/bin/a.wasm"]);
    page.matches("bundle/link");
}

#[test]
fn native_and_precompiled_programs_faulty_sources_and_bundles_are_refused_and_leave_nothing() {
    let page = Page::new();
    let crib = crib();
    fs::write(crib.path("elf.wasm"), b"\x7fELF\x02\x01\x01\0\0\0\0\0").unwrap();
    fs::write(crib.path("bad.json"), r#"{"tools": [{"name": "x"}]}"#).unwrap();
    fs::write(
        crib.path("folder.json"),
        json!({"tools": [{
            "name": "echo", "command": ["./tools/bin/echo"], "capabilities": {"files": {"read": ["./work"]}},
        }]})
        .to_string(),
    )
    .unwrap();
    packed(&crib, "tools.json", "done.tar");
    for source in ["elf.wasm", "bad.json", "folder.json", "done.tar", "absent"] {
        let ran = pack(&crib, source, "x.tar");
        page.show(&ran);
        let left =
            fs::read_dir(crib.dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|name| name.starts_with(".unfinished") || name == "x.tar").collect();
        assert!(left.is_empty(), "{source}: {left:?}");
    }
    page.matches("bundle/faulty");
}

#[test]
fn an_output_that_is_a_part_of_the_sources_is_refused() {
    let page = Page::new();
    let crib = crib();
    let before = fs::read(crib.path("tools.json")).unwrap();
    page.run(&crib, &["bundle", "pack", "tools.json", "-o", "tools.json", "--force"]);
    assert_eq!(fs::read(crib.path("tools.json")).unwrap(), before);
    page.matches("bundle/output");
}

#[test]
fn a_file_that_is_not_a_bundle_is_replaced_only_by_force() {
    let crib = crib();
    packed(&crib, "tools.json", "x.tar");
    packed(&crib, "tools.json", "x.tar");
    let whole = fs::read(crib.path("x.tar")).unwrap();
    for name in ["notes.txt", "backup.tar"] {
        fs::write(crib.path(name), "mine").unwrap();
        let ran = pack(&crib, "tools.json", name);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        let expected = format!("error: `{name}` exists and is not a bundle\nhint: name another file with `-o`, or ");
        assert!(ran.stderr.starts_with(&expected), "{ran:?}");
        assert_eq!(fs::read_to_string(crib.path(name)).unwrap(), "mine");
        let ran = crib.run(&["bundle", "pack", "tools.json", "-o", name, "--force"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(fs::read(crib.path(name)).unwrap() == whole);
    }
    for (out, expected) in [
        ("work", "error: `work` is a folder\nhint: name a file, such as `-o work/tools.tar`\n"),
        (
            "no/such/x.tar",
            "error: the directory `no/such` of `no/such/x.tar` does not exist\nhint: create it with `mkdir -p no/such`\n",
        ),
    ] {
        let ran = crib.run(&["bundle", "pack", "tools.json", "-o", out, "--force"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), expected), "{out}");
    }
}

#[cfg(unix)]
#[test]
fn an_advised_command_has_its_path_as_one_word() {
    let crib = crib();
    fs::create_dir(crib.path("a b;id")).unwrap();
    for (out, advice) in [
        ("a b;id", "hint: name a file, such as `-o 'a b;id/tools.tar'`\n"),
        ("no $(id)/x.tar", "hint: create it with `mkdir -p 'no $(id)'`\n"),
    ] {
        let ran = pack(&crib, "tools.json", out);
        assert!(ran.code == Some(1) && ran.stderr.ends_with(advice), "{ran:?}");
    }
}

#[test]
fn a_component_that_is_older_than_its_source_is_packed_only_on_request() {
    let page = Page::new();
    let crib = crib();
    fs::create_dir_all(crib.path("tools/bin/src")).unwrap();
    fs::write(crib.path("tools/bin/Cargo.toml"), "[package]\nname = \"echo\"\n").unwrap();
    fs::File::options()
        .write(true)
        .open(crib.path("tools/bin/Cargo.toml"))
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let source = fs::File::create(crib.path("tools/bin/src/lib.rs")).unwrap();
    let set = |seconds| {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        source.set_modified(time).unwrap();
    };
    set(1);
    packed(&crib, "tools.json", "x.tar");
    set(4_000_000_000);
    let ran = pack(&crib, "tools.json", "y.tar");
    let expected = "error: `tools/bin/src/lib.rs` is newer than `tools/bin/echo.wasm`\n\
                    hint: run `toolcrib build tools/bin` first, or pack the component as it is with `--allow-stale`\n";
    assert_eq!(ran.stderr, expected);
    assert!(!crib.path("y.tar").exists());
    page.run(&crib, &["bundle", "pack", "tools.json", "-o", "y.tar", "--allow-stale"]);
    assert!(fs::read(crib.path("x.tar")).unwrap() == fs::read(crib.path("y.tar")).unwrap());
    page.matches("bundle/stale");
}

#[test]
fn inspect_shows_tools_requests_files_and_licences() {
    let page = Page::new().hide(SIZE, "${1}[size]");
    let crib = crib();
    let said = packed(&crib, "tools.json", "x.tar");
    page.run(&crib, &["bundle", "inspect", "x.tar"]);
    let ran = crib.run(&["bundle", "inspect", "x.tar", "--json"]);
    let sheet: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&sheet["digest"], &sheet["licenseFiles"]), (&said["digest"], &json!(["LICENSE"])));
    assert_eq!(sheet["files"].as_array().unwrap().len(), 5);
    assert!(sheet["sbom"]["components"].as_u64().unwrap() >= 4, "{sheet}");
    assert_eq!(sheet["items"][1]["requests"], json!(["env:TOKEN"]));
    assert!(!crib.path("audit").read_dir().unwrap().any(|_| true), "nothing ran");
    page.matches("bundle/inspect");
}
