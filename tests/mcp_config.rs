//! `toolcrib mcp config`: the settings files of MCP clients on disk. The merge of each format is tested beside its code.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::crib::{Crib, Ran, TOOLCRIB};
use crate::screen::Page;

const CLIENTS: [&str; 10] =
    ["claude-code", "claude-desktop", "codex", "vscode", "cursor", "gemini", "opencode", "goose", "crush", "zed"];

/// Path of the program as an entry names it.
fn program() -> String {
    Path::new(TOOLCRIB).canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn config(crib: &Crib, args: &[&str]) -> Ran {
    crib.run(&[["mcp", "config"].as_slice(), args].concat())
}

fn described(crib: &Crib, args: &[&str]) -> Value {
    let ran = config(crib, &[args, &["--json"]].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn file(described: &Value) -> PathBuf {
    PathBuf::from(described["file"].as_str().unwrap())
}

/// Writes a file below the home of a crib, with its folder.
fn home_file(crib: &Crib, name: &str, text: &str) -> PathBuf {
    let path = crib.path("home").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_client_is_shown_its_file_and_fragment_and_nothing_is_written() {
    for client in CLIENTS {
        let crib = Crib::new();
        let shown = described(&crib, &[client]);
        assert_eq!((&shown["state"], &shown["scope"]), (&"printed".into(), &"user".into()), "{shown}");
        assert!(file(&shown).starts_with(crib.path("home")), "{shown}");
        assert!(shown["entry"].to_string().contains(&program()), "{shown}");
        let ran = config(&crib, &[client]);
        let wanted = format!("{}\n\n{}", file(&shown).display(), shown["fragment"].as_str().unwrap());
        assert_eq!(
            (ran.code, ran.stdout, ran.stderr),
            (Some(0), wanted, "hint: `--write` adds this to the file\n".into())
        );
        assert_eq!(
            fs::read_dir(crib.path("home"))
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name() != ".local")
                .count(),
            0
        );
    }
}

#[test]
fn a_new_file_is_the_fragment_and_a_second_run_changes_nothing() {
    for client in CLIENTS {
        let crib = Crib::new();
        let shown = described(&crib, &[client]);
        let ran = config(&crib, &[client, "--write"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("added `"), "{ran:?}");
        let path = file(&shown);
        assert_eq!(fs::read_to_string(&path).unwrap(), shown["fragment"].as_str().unwrap(), "{client}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{client}: the user's alone");
        let before = path.metadata().unwrap().modified().unwrap();
        let again = config(&crib, &[client, "--write", "--force"]);
        assert!(
            again.code == Some(0) && again.stderr.ends_with(" has this entry already: nothing was changed\n"),
            "{again:?}"
        );
        assert_eq!(path.metadata().unwrap().modified().unwrap(), before);
        assert_eq!(described(&crib, &[client, "--write"])["state"], "unchanged");
    }
}

#[test]
fn an_existing_file_keeps_its_text_its_mode_and_its_link() {
    let page = Page::new();
    let crib = Crib::new();
    let text = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" } // why\n  }\n}\n";
    let real = home_file(&crib, "dotfiles/mcp.json", text);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(crib.path("home/.cursor")).unwrap();
    symlink(&real, crib.path("home/.cursor/mcp.json")).unwrap();
    let ran = config(&crib, &["cursor", "--write"]);
    page.show(&ran);
    let new = fs::read_to_string(&real).unwrap();
    let start =
        "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }, // why\n    \"toolcrib\": {\n";
    assert!(new.starts_with(start) && new.ends_with("\n    }\n  }\n}\n"), "{new}");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(crib.path("home/.cursor/mcp.json").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_dir(crib.path("home/dotfiles")).unwrap().count(), 1, "no temporary file is left");
    page.matches("mcp-config/existing");
}

#[test]
fn a_link_to_nothing_and_a_read_only_file_are_refused() {
    let page = Page::new();
    let crib = Crib::new();
    fs::create_dir_all(crib.path("home/.cursor")).unwrap();
    symlink(crib.path("home/gone.json"), crib.path("home/.cursor/mcp.json")).unwrap();
    let ran = config(&crib, &["cursor", "--write"]);
    page.show(&ran);
    let path = home_file(&crib, ".codex/config.toml", "model = 'x'\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = config(&crib, &["codex", "--write"]);
    page.show(&ran);
    assert_eq!(fs::read_to_string(&path).unwrap(), "model = 'x'\n");
    page.matches("mcp-config/link");
}

#[test]
fn a_broken_file_is_refused_and_untouched_and_the_fragment_is_printed() {
    let page = Page::new();
    for (client, name, text) in [
        ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": { }"),
        ("codex", ".codex/config.toml", "[mcp_servers\n"),
        ("goose", ".config/goose/config.yaml", "extensions: [\n"),
        ("claude-code", ".claude.json", "{} // no comments\n"),
        ("goose", ".config/goose/config.yaml", "extensions: {a: {enabled: true}}\n"),
    ] {
        let crib = Crib::new();
        let path = home_file(&crib, name, text);
        let ran = config(&crib, &[client, "--write", "--force"]);
        page.show(&ran);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(described(&crib, &[client, "--write"])["state"], "refused");
    }
    page.matches("mcp-config/broken");
}

#[test]
fn another_entry_is_shown_and_replaced_only_by_force() {
    let crib = Crib::new();
    let text = "# mine\n[mcp_servers.toolcrib] # old\ncommand = \"/old/toolcrib\"\nargs = [\"mcp\"]\n\n[mcp_servers.toolcrib.env]\nKEY = \"hunter2\"\n";
    let path = home_file(&crib, ".codex/config.toml", text);
    let ran = config(&crib, &["codex", "--write"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let differences = format!("  command: \"/old/toolcrib\", new: \"{}\"\n  env: only in the file\n", program());
    assert_eq!(ran.stdout, differences);
    assert!(
        ran.stderr.ends_with(
            "` has another entry `mcp_servers.toolcrib`: nothing was changed\nhint: pass `--force` to replace it\n"
        ),
        "{ran:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let shown = described(&crib, &["codex", "--write"]);
    assert!(shown["state"] == "different" && !shown.to_string().contains("hunter2"), "{shown}");
    let ran = config(&crib, &["codex", "--write", "--force"]);
    assert!(ran.code == Some(0) && ran.stderr.starts_with("replaced `mcp_servers.toolcrib` in `"), "{ran:?}");
    let wanted = format!("# mine\n[mcp_servers.toolcrib] # old\ncommand = \"{}\"\nargs = [\"mcp\"]\n", program());
    assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
}

#[test]
fn a_project_has_files_of_its_own() {
    let crib = Crib::new();
    for (client, name) in [
        ("claude-code", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
        ("crush", "crush.json"),
        ("zed", ".zed/settings.json"),
    ] {
        let ran = config(&crib, &[client, "--project", "--write"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(fs::read_to_string(crib.path(name)).unwrap().contains(&program()), "{client}");
    }
    for client in ["claude-desktop", "goose"] {
        let ran = config(&crib, &[client, "--project"]);
        assert!(ran.code == Some(1) && ran.stderr.ends_with("hint: leave out `--project`\n"), "{ran:?}");
    }
    for wrong in [["cursor", "--project", "--user"].as_slice(), &["cursor", "--force"], &["emacs"]] {
        assert_eq!(config(&crib, wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn sources_become_absolute_and_other_arguments_stay() {
    let crib = Crib::new();
    fs::write(crib.path("tools.json"), "{\"tools\":[]}").unwrap();
    let here = crib.dir.path().canonicalize().unwrap().join("tools.json");
    let reference = "oci://registry.example/acme/weather:1";
    let args = [
        "cursor",
        "--tools",
        "tools.json",
        "--tools",
        reference,
        "--json",
        "--",
        "--allow-read=docs",
        "--set",
        "run.tags=a",
    ];
    let shown: Value = serde_json::from_str(&config(&crib, &args).stdout).unwrap();
    let wanted =
        ["mcp", "--tools", here.to_str().unwrap(), "--tools", reference, "--allow-read=docs", "--set", "run.tags=a"];
    assert_eq!(shown["entry"]["args"], Value::from_iter(wanted));
    let ran = config(&crib, &["cursor", "--tools", "none.json"]);
    assert!(ran.code == Some(1) && ran.stderr.starts_with("error: cannot find the source `none.json`\n"), "{ran:?}");
}

#[test]
fn arguments_that_start_no_server_for_a_client_are_refused() {
    let page = Page::new();
    let crib = Crib::new();
    for arguments in [
        &["--alow-read=docs"][..],
        &["--max-listed=many"],
        &["--no-token"],
        &["--help"],
        &["--http=127.0.0.1:0"],
        &["token", "new", "ada"],
        &["extra"],
    ] {
        let ran = config(&crib, &[&["cursor", "--write", "--"], arguments].concat());
        page.show(&ran);
        assert!(!crib.path("home/.cursor").exists(), "{arguments:?}");
    }
    let ran = config(&crib, &["cursor", "--", "--alow-read=docs"]);
    page.show(&ran);
    page.matches("mcp-config/arguments");
}

#[test]
fn an_argument_that_a_client_would_change_is_refused() {
    let crib = Crib::new();
    let ran = config(&crib, &["vscode", "--write", "--", "--set", "run.tags=${input:x}"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let wanted = "error: `run.tags=${input:x}` cannot be an argument: VS Code would replace the `${` in it\n";
    assert!(ran.stderr.starts_with(wanted), "{ran:?}");
    assert_eq!(config(&crib, &["codex", "--", "--set", "run.tags=${input:x}"]).code, Some(0));
}

#[test]
fn too_large_a_file_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    let path = home_file(&crib, ".claude.json", "{}");
    fs::File::options().write(true).open(path).unwrap().set_len((16 << 20) + 1).unwrap();
    let ran = config(&crib, &["claude-code", "--write"]);
    page.show(&ran);
    page.matches("mcp-config/too-large");
}
