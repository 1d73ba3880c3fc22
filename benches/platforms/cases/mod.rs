//! Cases that run the program itself: the files of a case, and the command lines, whose output, exit codes, audit records
//! and files are compared.

mod commands;
mod hostile;
mod languages;
mod refusals;
mod sources;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{guest, toolbox};

/// Path of the shipped tools from the folder of a case.
const CRIB: &str = "../../../../crib";

type Prepare = Box<dyn Fn(&Path) + Send + Sync>;

/// One case. Its paths are relative, so that they are equal on each platform.
pub(crate) struct Case {
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) prepare: Prepare,
    /// Command lines, run in this order.
    pub(crate) runs: Vec<Vec<String>>,
    /// `true` if it takes minutes under emulation.
    pub(crate) is_long: bool,
    /// `true` if its calls run at once, so that their order is not compared.
    pub(crate) is_unordered: bool,
}

/// Returns all cases.
pub(crate) fn all() -> Vec<Case> {
    [hostile::cases(), sources::cases(), refusals::cases(), commands::cases(), languages::cases()]
        .into_iter()
        .flatten()
        .collect()
}

fn case(
    group: &'static str,
    name: impl Into<String>,
    prepare: impl Fn(&Path) + Send + Sync + 'static,
    runs: &[&[&str]],
) -> Case {
    let runs = runs.iter().map(|run| run.iter().map(|word| (*word).to_owned()).collect()).collect();
    Case { group, name: name.into(), prepare: Box::new(prepare), runs, is_long: false, is_unordered: false }
}

fn nothing(_: &Path) {}

/// Copies the shipped tools, so that their path has no `..`, which Windows resolves before it is shown.
fn copy_crib(folder: &Path) {
    for path in ["tools.json", "tools/bin"] {
        let from = toolbox().join(path);
        let names = fs::read_dir(&from).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
        for file in names.unwrap_or_else(|_| vec![from]) {
            let below = file.strip_prefix(toolbox()).expect("below it").to_owned();
            write(folder, &format!("crib/{}", below.display()), fs::read(&file).expect("a file"));
        }
    }
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content).expect("a file");
}

/// Copies a program of the tests to `tools/bin`.
fn install(folder: &Path, name: &str, of: &str) {
    fs::copy(guest(of), folder.join(format!("tools/bin/{name}.wasm"))).expect("the guests were built");
}

fn install_wat(folder: &Path, name: &str, text: &str) {
    write(folder, name, wat::parse_str(text).expect("valid text"));
}

fn manifest(folder: &Path, tools: &Value) {
    write(folder, "tools.json", json!({ "tools": tools }).to_string());
}

/// Creates a manifest with one program of the tests.
fn with_guest(name: &'static str) -> impl Fn(&Path) + Send + Sync {
    move |folder| {
        install(folder, name, name);
        manifest(folder, &json!([{"name": name, "command": [format!("./tools/bin/{name}")]}]));
    }
}
