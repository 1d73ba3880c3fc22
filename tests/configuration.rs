//! Settings in layers: options, assignments, environment, the project's file once it is trusted, the profile, the user's file and the
//! system's file; and the commands that show and change them.

mod assigning;
mod changing;
mod explaining;
mod keys;
mod layers;
#[cfg(unix)]
mod owners;
mod projects;
mod repairing;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::crib::{Crib, Ran};

/// The user's file of a crib.
fn user_file(crib: &Crib) -> PathBuf {
    match cfg!(target_os = "macos") {
        true => crib.path("home/Library/Application Support/toolcrib/config.toml"),
        false => crib.path("home/.config/toolcrib/config.toml"),
    }
}

pub(crate) fn write_user(crib: &Crib, text: &str) {
    let file = user_file(crib);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn write_system(crib: &Crib, text: &str) {
    fs::create_dir_all(crib.path("home/etc")).unwrap();
    fs::write(crib.path("home/etc/config.toml"), text).unwrap();
    // The machine may let the group write new files.
    set_mode(&crib.path("home/etc"), 0o755);
    set_mode(&crib.path("home/etc/config.toml"), 0o644);
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

fn write_project(crib: &Crib, text: &str) {
    fs::write(crib.path("toolcrib.toml"), text).unwrap();
}

/// Crib with a model name in all four files; nobody trusts the project's.
fn disagreeing() -> Crib {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    write_project(&crib, "[model]\nname = \"from-project\"\n");
    write_user(&crib, "[model]\nname = \"from-user\"\n\n[profile.ci.model]\nname = \"from-profile\"\n");
    write_system(&crib, "# system\n[model]\nname = \"from-system\"\n");
    crib
}

/// Permissions of the first tool, as `list --json` shows them.
fn granted(crib: &Crib, flags: &[&str]) -> String {
    let ran = crib.run(&[&["list", "--json"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    json(&ran)[0]["granted"].to_string()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Name of the model of a run, and the origin of the name.
fn model(crib: &Crib, flags: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let mut command = crib.toolcrib(&[&["run", "--print-config"], flags].concat());
    let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
    let shown = json(&ran);
    (shown["model"].as_str().unwrap_or("none").to_owned(), shown["from"]["model"].as_str().unwrap().to_owned())
}
