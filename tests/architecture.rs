//! Rules of the code layout, checked by reading the sources: the order of the modules, and the knowledge that each must
//! not have.

mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the library; each may import only from those before it.
const ORDER: [&str; 21] = [
    "error", "figures", "store", "tool", "flow", "call", "schema", "stub", "source", "registry", "policy", "hook",
    "delegate", "model", "remote", "worker", "observe", "audit", "sandbox", "pipeline", "runtime",
];

/// Each module of the crate that reads programs, likewise.
const COMPONENT_ORDER: [&str; 14] = [
    "error",
    "form",
    "sections",
    "nesting",
    "descriptor",
    "language",
    "extensions",
    "externs",
    "functions",
    "kind",
    "capability",
    "interfaces",
    "inspect",
    "preflight",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    files
}

/// Files of the library, each with its module.
fn library() -> Vec<(&'static str, PathBuf, String)> {
    modules("runtime/src", &ORDER)
}

/// The files of the crate that reads programs, likewise.
fn component() -> Vec<(&'static str, PathBuf, String)> {
    modules("runtime/component/src", &COMPONENT_ORDER)
}

fn modules(source: &str, order: &'static [&'static str]) -> Vec<(&'static str, PathBuf, String)> {
    let source = root().join(source);
    let files = rust_files(&source).into_iter().filter(|(path, _)| *path != source.join("lib.rs"));
    let modules = files.map(|(path, text)| {
        let first = path.strip_prefix(&source).unwrap().components().next().unwrap();
        let first = Path::new(first.as_os_str()).file_stem().unwrap().to_string_lossy().into_owned();
        let module = order.iter().find(|module| **module == first);
        (*module.unwrap_or_else(|| panic!("{} has no place in the order", path.display())), path, text)
    });
    modules.collect()
}

/// The part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

/// Code of a file without its comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn an_import_points_only_backwards() {
    assert!(imports_backwards(library(), &ORDER) > 30, "the test still finds imports");
    assert!(imports_backwards(component(), &COMPONENT_ORDER) > 30, "the test still finds imports");
}

/// Asserts the order of the modules of a crate, and counts the imports between them.
fn imports_backwards(files: Vec<(&str, PathBuf, String)>, order: &[&str]) -> usize {
    let place = |module: &str| order.iter().position(|known| *known == module);
    let mut imports = 0;
    for (module, path, text) in files {
        for line in code(&text) {
            assert!(
                !line.contains("crate::{") && !line.contains("super::super"),
                "{}: name the module",
                path.display()
            );
            for import in line.split("crate::").skip(1) {
                let name: String = import.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(imported) = place(&name) else { continue };
                imports += 1;
                assert!(Some(imported) <= place(module), "{}: {module} imports {name}", path.display());
            }
        }
    }
    imports
}

#[test]
fn only_the_sandbox_names_the_engine() {
    let names = |text: &str| code(text).any(|line| line.contains("wasmtime"));
    assert!(library().iter().any(|(module, _, text)| *module == "sandbox" && names(text)));
    for (module, path, text) in library() {
        assert!(module == "sandbox" || !names(&text), "{} names the engine", path.display());
    }
    for (_, path, text) in component() {
        assert!(!names(&text), "{} names the engine", path.display());
    }
    for (path, text) in rust_files(&root().join("cli")) {
        assert!(!code(&text).any(|line| line.contains("wasmtime::")), "{} names the engine", path.display());
    }
}

#[test]
fn programs_are_read_without_an_engine() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut open = vec!["toolcrib-component".to_owned()];
    let mut seen = Vec::new();
    while let Some(name) = open.pop() {
        // A dependency is written with its version if the lock file has several.
        let plain = name.split(' ').next().unwrap().to_owned();
        assert!(!plain.starts_with("wasmtime") && !plain.starts_with("cranelift"), "it depends on {plain}");
        if seen.contains(&name) {
            continue;
        }
        let is_meant = |entry: &&str| {
            name.split_once(' ').is_none_or(|(_, version)| entry.contains(&format!("version = \"{version}\"")))
        };
        let head = format!("\nname = \"{plain}\"\n");
        for entry in lock.split("[[package]]").filter(|entry| entry.contains(&head)).filter(is_meant) {
            let list = entry.split("dependencies = [").nth(1).unwrap_or_default();
            open.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
        }
        seen.push(name);
    }
    assert!(seen.iter().any(|name| name.starts_with("wasmparser")), "the test still follows dependencies: {seen:?}");
    let readers = |text: &str| code(text).any(|line| line.contains("wasmparser") || line.contains("wit_parser"));
    for (_, path, text) in library() {
        assert!(!readers(&text), "{} reads a program: that is `toolcrib-component`'s", path.display());
    }
}

#[test]
fn sections_are_walked_in_one_place() {
    for (module, path, text) in component() {
        let walks = code(&text).take_while(|line| !line.contains("mod tests")).any(|line| line.contains("parse_all("));
        assert!(!walks || module == "sections", "{} walks sections", path.display());
    }
}

#[test]
fn only_the_pipeline_reaches_the_sandbox() {
    for (module, path, text) in library() {
        let reaches = code(&text).any(|line| line.contains("crate::sandbox"));
        // The runtime creates the sandbox and passes it to the pipeline.
        assert!(!reaches || ["sandbox", "pipeline", "runtime"].contains(&module), "{}", path.display());
        let runs = code(&text).any(|line| line.contains("sandbox.run"));
        assert!(!runs || module == "pipeline", "{} runs a guest", path.display());
    }
}

#[test]
fn past_the_sources_there_is_only_the_tool() {
    for (module, path, text) in library() {
        if module != "source" {
            for word in ["envPassthrough", "timeoutSec", "tools_json::read"] {
                assert!(!code(&text).any(|line| line.contains(word)), "{} knows a dialect: {word}", path.display());
            }
        }
        // The format of a tool is data for output: its effects are facts on the tool's origin.
        if !["source", "tool"].contains(&module) {
            let asks = code(without_tests(&text)).any(|line| line.contains("Format::"));
            assert!(!asks, "{} asks a tool for its format", path.display());
        }
    }
}

#[test]
fn the_library_has_no_door() {
    let observer = rust_files(&root().join("runtime/agent-tool/src"));
    for (path, text) in library().into_iter().chain(component()).map(|(_, path, text)| (path, text)).chain(observer) {
        for word in ["clap", "openai", "otlp", "println!", "eprintln!", "std::env", "home_dir", "std::process::Command"]
        {
            assert!(!code(&text).any(|line| line.contains(word)), "{}: {word}", path.display());
        }
    }
}

#[test]
fn a_grant_has_one_constructor() {
    let words = ["-> Result<Self", "-> Self", "-> Grant", "-> Result<Grant", "&mut self", "Default"];
    let makes = |text: &str| code(text).filter(|line| words.iter().any(|word| line.contains(word))).count();
    let grant = fs::read_to_string(root().join("runtime/src/policy/grant.rs")).unwrap();
    assert_eq!(makes(&grant), 6, "one makes it, four narrow what was made, and one adds the files of a skill");
    let literals =
        library().iter().filter(|(_, path, text)| !path.ends_with("grant.rs") && text.contains("Grant {")).count();
    assert_eq!(literals, 0);
}

#[test]
fn a_store_is_made_in_one_place() {
    let made: usize = library().iter().map(|(_, _, text)| without_tests(text).matches("Store::new(").count()).sum();
    assert_eq!(made, 1);
}

#[test]
fn every_file_says_what_it_is_and_stays_short() {
    for folder in ["runtime", "cli", "guest-sdk", "tools", "tests", "benches"] {
        for (path, text) in rust_files(&root().join(folder)) {
            assert!(text.starts_with("//!"), "{} does not open with `//!`", path.display());
            let lines = text.lines().count();
            assert!(lines <= 450, "{} has {lines} lines: what second idea does it own?", path.display());
        }
    }
}

#[test]
fn every_snapshot_belongs_to_one_test() {
    let sources = rust_files(&root().join("tests"));
    let mut snapshots = 0;
    for group in fs::read_dir(crate::screen::snapshots()).unwrap().map(|entry| entry.unwrap().path()) {
        let group_name = group.file_name().unwrap().to_string_lossy().into_owned();
        // The test of the help finds its snapshots by the commands, and compares them with the files.
        if group_name == "help" {
            continue;
        }
        for file in fs::read_dir(&group).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "snap") {
                continue;
            }
            let name = format!("matches(\"{group_name}/{}\")", file.file_stem().unwrap().to_string_lossy());
            let tests: usize = sources.iter().map(|(_, text)| text.matches(&name).count()).sum();
            assert_eq!(tests, 1, "{} belongs to {tests} tests: each snapshot is compared by one", file.display());
            snapshots += 1;
        }
    }
    println!("{snapshots} snapshots");
    assert!(snapshots > 100, "the test still finds snapshots: {snapshots}");
}

#[test]
fn the_engine_is_at_or_above_the_release_that_fixed_its_advisories() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut seen = Vec::new();
    for entry in lock.split("[[package]]").skip(1) {
        let field = |key: &str| entry.split(&format!("{key} = \"")).nth(1).unwrap().split('"').next().unwrap();
        let (name, version) = (field("name"), field("version"));
        let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap_or_default()).collect();
        // The compiler's crates count their releases as 0.87 more.
        let release = match name {
            _ if name.starts_with("wasmtime") || name == "wiggle" => parts[0],
            _ if name.starts_with("cranelift") => parts[1] - 87,
            _ => continue,
        };
        assert!(release == 48 && parts[2] >= 8 || release > 48, "{name} {version}");
        seen.push(name);
    }
    for name in ["wasmtime", "wasmtime-wasi", "wasmtime-wasi-http", "wasmtime-environ", "cranelift-codegen"] {
        assert_eq!(seen.iter().filter(|known| **known == name).count(), 1, "one version of {name}");
    }
}

#[test]
fn a_process_is_started_only_to_compile_to_build_to_fetch_packages_to_edit_settings_to_check_a_server_and_to_run() {
    let sources = rust_files(&root().join("cli"));
    let named = |is_meant: &dyn Fn(&str) -> bool| {
        let files = sources.iter().filter(|(_, text)| is_meant(text));
        let mut files: Vec<_> = files.map(|(path, _)| path.file_name().unwrap().to_owned()).collect();
        files.sort();
        files
    };
    let starts = |text: &str| code(text).any(|line| line.replace("clap::Command::new(", "").contains("Command::new("));
    assert_eq!(
        named(&starts),
        [
            "compiler.rs",
            "compiler_windows.rs",
            "editor.rs",
            "job_object.rs",
            "launcher.rs",
            "process.rs",
            "rust.rs",
            "server_process.rs"
        ]
    );
    // Only the author's commands reach the code that builds, and no call of a tool.
    let builds =
        |text: &str| code(text).any(|line| line.replace("trust::", "").replace("Trust::", "").contains("rust::"));
    assert_eq!(named(&builds), ["build.rs", "checks.rs"]);
    // Only `doctor` starts a server.
    let checks = |text: &str| code(text).any(|line| line.contains("ServerProcess::start"));
    assert_eq!(named(&checks), ["servers.rs"]);
    // Only a form of the console starts a run.
    let runs = |text: &str| code(text).any(|line| line.contains("launcher.start("));
    assert_eq!(named(&runs), ["start.rs"]);
}

/// The guests are no part of `cargo test`: `.ci/run` names those with tests.
#[test]
fn every_test_of_a_guest_is_run() {
    let run = fs::read_to_string(root().join(".ci/run")).unwrap();
    let (_, step) = run.split_once("\ntest_guests() {").unwrap();
    let (step, _) = step.split_once("\n}").unwrap();
    let named: Vec<&str> = step.split_whitespace().collect();
    let is_named = |name: &str| named.windows(2).any(|pair| pair == ["-p", name]);
    let folders = ["tools", "tests/guests", "guest-sdk"].map(|folder| root().join(folder));
    let inner = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut count = 0;
    for package in inner.chain(folders.iter().cloned()).filter(|path| path.join("Cargo.toml").is_file()) {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let Some(name) = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')) else {
            continue;
        };
        let has_tests = rust_files(&package.join("src")).iter().any(|(_, text)| text.contains("#[test]"));
        // The tests of `toolcrib-programs` run with the host's crates.
        if has_tests && name != "toolcrib-programs" {
            assert!(is_named(name), "`.ci/run` runs no test of `{name}`");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}
