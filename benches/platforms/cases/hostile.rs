//! The attack catalogue (`tests/hostile/cases.rs`), each attack in one call, and the limits of the command line.

use serde_json::json;

use crate::attacks::{CASES, Program};

use super::{Case, case, install, install_wat, manifest, with_guest};

pub(super) fn cases() -> Vec<Case> {
    attacks().chain(limits()).collect()
}

fn attacks() -> impl Iterator<Item = Case> {
    CASES.iter().map(|attack| {
        let prepare = move |folder: &std::path::Path| {
            match attack.program {
                Program::Guest(name) => install(folder, "victim", name),
                Program::Text(text) => install_wat(folder, "tools/bin/victim.wasm", &text()),
            }
            if let Some(fill) = attack.folder {
                fill(&folder.join("work"));
            }
            manifest(folder, &json!([attack.entry()]));
        };
        let grant: &[&str] = if attack.folder.is_some() { &["--allow-write=work"] } else { &[] };
        case("hostile", attack.name, prepare, &[&[&["call", "victim", attack.arguments], grant].concat()])
    })
}

fn limits() -> impl Iterator<Item = Case> {
    let table: [(&str, &str, &[&str]); 9] = [
        ("spin", "{}", &["--set=limits.tool_timeout=300ms"]),
        ("spin", "{}", &["--set=limits.fuel=1000000"]),
        ("grow", "{}", &["--max-memory=16MiB"]),
        ("flood_stdout", "{}", &["--set=limits.max_output=64KiB"]),
        ("big_result", r#"{"bytes":10240}"#, &["--set=limits.max_output=10KiB"]),
        ("big_result", r#"{"bytes":10237}"#, &["--set=limits.max_output=10KiB"]),
        ("exit_code", r#"{"code":7}"#, &[]),
        ("empty", "{}", &[]),
        ("random_bytes", "{}", &["--max-memory=1MiB"]),
    ];
    table.into_iter().map(|(guest, arguments, flags)| {
        let name = format!("{guest} {arguments} {}", flags.join(" "));
        case("limits", name, with_guest(guest), &[&[&["call", guest, arguments], flags].concat()])
    })
}
