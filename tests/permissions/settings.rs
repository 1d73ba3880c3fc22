//! `toolcrib.toml`: its location, the effect of its rules, and errors in it, which stop the program.

use std::fs;

use serde_json::json;

use super::{crib, decision};
use crate::screen::Page;

#[test]
fn the_file_of_this_folder_is_followed_and_another_in_its_place() {
    let crib = crib();
    fs::write(crib.path("toolcrib.toml"), "[permissions]\ndeny = ['echo(n=1)']\n").unwrap();
    fs::write(crib.path("work/other.toml"), "[permissions]\ndeny = ['echo(n=2)']\n").unwrap();
    let rule = |n: u32, flags: &[&str]| decision(&crib, &json!({ "n": n }), flags)["restsOn"].clone();
    assert_eq!(rule(1, &[]), "deny echo(n=1) (toolcrib.toml)");
    assert_eq!(rule(1, &["--allow-tool=echo"]), "deny echo(n=1) (toolcrib.toml)", "no flag overrides it");
    assert_eq!(rule(2, &["--config=work/other.toml"]), "deny echo(n=2) (work/other.toml)");
    assert_eq!(rule(1, &["--config=work/other.toml"]), json!(null), "one file, not both");
    let mut command = crib.toolcrib(&["call", "echo", "{\"n\":2}"]);
    let output = command.env("TOOLCRIB_CONFIG", "work/other.toml").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let ran = crib.run(&["call", "echo", "{}", "--config=absent.toml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: cannot read the settings in `absent.toml`\ncause: No such file"), "{ran:?}");
}

#[test]
fn allow_ask_and_deny_of_a_file_do_what_their_flags_do() {
    let crib = crib();
    let text = "[permissions]\nallow = ['echo(path=in/*)']\nask = ['echo']\ndeny = ['echo(path=*.git*)']\n";
    fs::write(crib.path("toolcrib.toml"), text).unwrap();
    let reason = |path: &str, flags: &[&str]| decision(&crib, &json!({ "path": path }), flags)["reason"].clone();
    assert_eq!(reason("in/x", &[]), "rule");
    assert_eq!(reason("out/x", &[]), "nobody");
    assert_eq!(reason("out/x", &["--allow-tool=echo(path=out/x)"]), "rule", "a flag answers the question of a file");
    let denied = decision(&crib, &json!({"path": "in/../.git/config"}), &["--allow-tool=*"]);
    assert_eq!(denied["restsOn"], "deny echo(path=*.git*) (toolcrib.toml)");
}

#[test]
fn a_slip_stops_every_command_with_its_line_and_what_to_do() {
    let page = Page::new();
    let crib = crib();
    for text in [
        "# rules\n[permissions]\ndney = ['echo']\n",
        "[security]\n",
        "[rules]\n",
        "[permissions]\ndeny = 'echo'\n",
        "[permissions]\ndeny = [\n  'echo',\n  'echo(n',\n]\n",
        "[permissions\n",
    ] {
        fs::write(crib.path("toolcrib.toml"), text).unwrap();
        page.text("toolcrib.toml", text);
        for arguments in [&["call", "echo", "{}"][..], &["list"], &["run", "go", "--model=m", "--dry-run"]] {
            page.run(&crib, arguments);
        }
        page.run(&crib, &["doctor"]);
    }
    assert_eq!(crib.records(), [] as [serde_json::Value; 0], "nothing ran");
    page.matches("config/slip");
}

#[cfg(unix)]
#[test]
fn a_link_to_no_file_is_an_error_and_not_a_file_without_denials() {
    let crib = crib();
    for place in ["toolcrib.toml", "home/.config/toolcrib/config.toml"] {
        let link = crib.path(place);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(crib.path("absent"), &link).unwrap();
        let ran = crib.run(&["call", "echo", "{}"]);
        assert!(
            ran.code == Some(1) && ran.stderr.starts_with("error: cannot read the settings in "),
            "{place}: {ran:?}"
        );
        fs::remove_file(link).unwrap();
    }
    assert_eq!(crib.records(), [] as [serde_json::Value; 0], "nothing ran");
    assert_eq!(crib.run(&["call", "echo", "{}"]).code, Some(0));
}
