//! The WIT packages of `wit/`: each folder resolves alone, the host links exactly the imports of the worlds, and
//! components that were built for a contract keep running.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcrib_component::capability::Capability;
use toolcrib_component::interfaces::{INTERFACES, Link};
use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, PackageId, Resolve, UnresolvedPackageGroup, WorldId};

use crate::crib::{Crib, TOOLCRIB};

mod prebuilt;

/// The packages, by their folders, with their names and worlds.
const PACKAGES: [(&str, &str, &[&str]); 4] = [
    ("code", "toolcrib:code@0.1.0", &["blocking-code", "code"]),
    ("command", "toolcrib:tool@0.1.0", &["checked-command", "command"]),
    ("script", "toolcrib:script@0.1.0", &["interpreter-guest"]),
    ("tool", "toolcrib:tool@1.1.0", &["preparing", "presenting", "previewing", "routing", "tool", "validating"]),
];

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}

/// Finds the WIT of WASI that comes with the engine: dependency files beside the program list the sources that it was
/// compiled from.
fn wasi() -> PathBuf {
    let notes = fs::read_dir(Path::new(TOOLCRIB).parent().unwrap().join("deps")).unwrap();
    let notes = notes.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("wasmtime_wasi-") && name.ends_with(".d")
    });
    // The newest: an earlier build may have used another version, or sources in another place.
    let newest = notes.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let text = fs::read_to_string(newest.expect("the engine's WASI was compiled")).unwrap();
    // Each source has its own line `SOURCE:`, with `\ ` for a space.
    let sources = text.lines().filter_map(|line| Some(PathBuf::from(line.strip_suffix(':')?.replace("\\ ", " "))));
    let folder = sources.filter_map(|source| Some(source.parent()?.to_owned())).find(|it| it.ends_with("p2/wit/deps"));
    folder.expect("the engine's bindings are made of its WIT")
}

/// Resolves a folder of `wit/` alone, as WIT tools do.
fn package(folder: &str) -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error:#}"));
    (resolve, package)
}

fn world(folder: &str, name: &str) -> (Resolve, WorldId) {
    let (resolve, package) = package(folder);
    let world = resolve.select_world(&[package], Some(name)).unwrap();
    (resolve, world)
}

fn parse(path: &Path) -> UnresolvedPackageGroup {
    match UnresolvedPackageGroup::parse(path, &fs::read_to_string(path).unwrap()) {
        Ok(group) => group,
        Err((_, error)) => panic!("{}: {error}", path.display()),
    }
}

/// The world of commands, resolved with all of the engine's WASI.
fn command_with_all_of_wasi() -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let packages = fs::read_dir(wasi()).unwrap().map(|entry| parse(&entry.unwrap().path())).collect();
    let package = resolve.push_groups(parse(&wit().join("command/command.wit")), packages).unwrap();
    let world = resolve.select_world(&[package], Some("command")).unwrap();
    (resolve, world)
}

/// Builds a component that imports the whole world and traps when it runs.
fn dummy(resolve: &Resolve, world: WorldId) -> Vec<u8> {
    let mut module = wit_component::dummy_module(resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

#[test]
fn each_folder_is_a_package_that_resolves_alone() {
    let folders = fs::read_dir(wit()).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let folders: BTreeSet<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(folders.iter().eq(PACKAGES.iter().map(|(folder, ..)| folder)), "{folders:?}");
    for (folder, name, worlds) in PACKAGES {
        let (resolve, package) = package(folder);
        assert_eq!(resolve.packages[package].name.to_string(), name);
        let found: BTreeSet<_> = resolve.packages[package].worlds.keys().map(String::as_str).collect();
        assert!(found.iter().eq(worlds), "{folder}: {found:?}");
        // The binary form, in which a package is published, holds the same.
        let bytes = wit_component::encode(&resolve, package).unwrap();
        let DecodedWasm::WitPackage(resolve, package) = wit_component::decode(&bytes).unwrap() else {
            panic!("{folder}: not a package");
        };
        assert_eq!(resolve.packages[package].name.to_string(), name);
    }
}

#[test]
fn the_wasi_packages_are_those_of_the_engine() {
    let settings = fs::read_to_string(wit().join("command/wkg.toml")).unwrap();
    let mut files = 0;
    for entry in fs::read_dir(wit().join("command/deps")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = file.strip_suffix(".wit") else { continue };
        files += 1;
        let ours = fs::read_to_string(&path).unwrap();
        let engine = fs::read_to_string(wasi().join(file)).unwrap();
        if name == "cli" {
            // Its worlds are left out: they name sockets.
            let rest = engine.strip_prefix(&ours).expect("`cli.wit` is the engine's up to its worlds");
            assert!(!rest.contains("\ninterface "), "only worlds are left out: {rest}");
        } else {
            assert!(ours == engine, "{file} differs from the engine's");
        }
        let line = format!("\"wasi:{name}\" = {{ path = \"deps/{file}\" }}");
        assert!(settings.lines().any(|it| it == line), "wkg.toml does not name {file}");
    }
    assert_eq!(files, settings.matches("path").count(), "`wkg.toml` names the packages of `deps/`");
}

#[test]
fn everything_in_the_world_is_linked() {
    let (resolve, world) = world("command", "command");
    assert!(resolve.worlds[world].imports.len() >= 20);
    let crib = Crib::new();
    fs::write(crib.path("tools/bin/n.wasm"), dummy(&resolve, world)).unwrap();
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
    let line = crib.call("n", &json!({}), &[]);
    assert_eq!(line["receipt"]["outcome"], "trap", "linked, started, and ended by its own trap: {line}");
}

#[test]
fn everything_in_the_world_of_rich_tools_is_linked() {
    let (resolve, world) = world("tool", "tool");
    assert!(resolve.worlds[world].imports.len() >= 7, "types and six interfaces");
    let crib = Crib::new();
    fs::write(crib.path("n.wasm"), dummy(&resolve, world)).unwrap();
    let line = crib.call("n", &json!({}), &["--tools", "n.wasm"]);
    assert_eq!(line["receipt"]["outcome"], "trap", "linked, started, and ended by its own trap: {line}");
}

#[test]
fn nothing_outside_the_world_is_linked() {
    let (resolve, world) = command_with_all_of_wasi();
    let mut outside = 0;
    for (_, interface) in &resolve.interfaces {
        let (Some(name), Some(package)) = (&interface.name, interface.package) else { continue };
        let id = resolve.packages[package].name.interface_id(name);
        let known = resolve.worlds[world].imports.keys().any(|key| resolve.name_world_key(key) == id);
        if known || id.starts_with("wasi:cli/run@") {
            continue;
        }
        outside += 1;
        // The instance has a function that no interface has: the name of the interface alone decides about linking.
        let crib = Crib::new();
        crib.install_wat("n", &crate::foreign::sockets::calls(&id));
        crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
        let line = crib.call("n", &json!({}), &[]);
        if id.starts_with("wasi:sockets/") {
            assert_eq!(line["receipt"]["outcome"], "denied", "known, and never granted: {line}");
            continue;
        }
        assert!(line["error"].as_str().unwrap().contains(&id), "{line}");
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{line}");
    }
    assert!(outside >= 7, "the engine's WASI has sockets, which no tool gets: {outside}");
}

/// Asserts that a world imports the interfaces of the table that are linked in this way.
fn assert_table(resolve: &Resolve, world: WorldId, link: Link) {
    let imports = resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key));
    let names: BTreeSet<_> = imports.map(|name| name.split('@').next().unwrap().to_owned()).collect();
    let linked = INTERFACES.iter().filter(|known| known.link == link);
    // The world leaves out requests by HTTP, which are linked too: their WIT is not part of the engine's WASI.
    let table = linked.filter(|known| known.capability != Capability::Http).map(|known| known.name.to_owned());
    assert_eq!(names, table.collect());
}

#[test]
fn the_table_of_interfaces_is_the_contract() {
    for (folder, link) in [("command", Link::All), ("tool", Link::Tools)] {
        let (resolve, world) = world(folder, folder);
        assert_table(&resolve, world, link);
    }
}

#[test]
fn every_item_of_the_contract_is_documented() {
    const WORDS: [&str; 8] = ["package ", "world ", "interface ", "import ", "export ", "record ", "variant ", "enum "];
    for (folder, ..) in PACKAGES {
        let file = format!("{folder}/{folder}.wit");
        let text = fs::read_to_string(wit().join(&file)).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            // A field, a case or a function is one line that ends so.
            let inner = line.ends_with(',') || (line.ends_with(';') && line.contains(": func("));
            let item = WORDS.iter().any(|word| line.starts_with(word)) || (inner && !line.starts_with("///"));
            assert!(!item || lines[index - 1].starts_with("///"), "{file}: not documented: {line}");
        }
    }
}
