//! The WIT world is what the host links: no more, no less.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcrib_component::capability::Capability;
use toolcrib_component::interfaces::{INTERFACES, Link};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, UnresolvedPackageGroup, WorldId};

use crate::crib::{Crib, TOOLCRIB};

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}

/// Finds the WIT of WASI that comes with the engine: the compiler notes beside the program which sources it read.
fn wasi() -> PathBuf {
    let notes = fs::read_dir(Path::new(TOOLCRIB).parent().unwrap().join("deps")).unwrap();
    let notes = notes.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("wasmtime_wasi-") && name.ends_with(".d")
    });
    // The newest: an earlier build may have used another version, or sources in another place.
    let newest = notes.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let text = fs::read_to_string(newest.expect("the engine's WASI was compiled")).unwrap();
    // Each source has a line `SOURCE:` of its own, with `\ ` for a space.
    let sources = text.lines().filter_map(|line| Some(PathBuf::from(line.strip_suffix(':')?.replace("\\ ", " "))));
    let folder = sources.filter_map(|source| Some(source.parent()?.to_owned())).find(|it| it.ends_with("p2/wit/deps"));
    folder.expect("the engine's bindings are made of its WIT")
}

fn parse(path: &Path) -> UnresolvedPackageGroup {
    match UnresolvedPackageGroup::parse(path, &fs::read_to_string(path).unwrap()) {
        Ok(group) => group,
        Err((_, error)) => panic!("{}: {error}", path.display()),
    }
}

/// The world of rich tools.
fn rich() -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let package = resolve.push_groups(parse(&wit().join("tool.wit")), Vec::new()).unwrap();
    let world = resolve.select_world(&[package], Some("tool")).unwrap();
    (resolve, world)
}

fn resolve() -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let mut packages = Vec::new();
    for entry in fs::read_dir(wasi()).unwrap() {
        let path = entry.unwrap().path();
        packages.push(parse(&path));
    }
    let package = resolve.push_groups(parse(&wit().join("command.wit")), packages).unwrap();
    let world = resolve.select_world(&[package], Some("command")).unwrap();
    (resolve, world)
}

/// A component that imports the whole world, and traps if it is run.
fn dummy(resolve: &Resolve, world: WorldId) -> Vec<u8> {
    let mut module = wit_component::dummy_module(resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

#[test]
fn everything_in_the_world_is_linked() {
    let (resolve, world) = resolve();
    assert!(resolve.worlds[world].imports.len() >= 20);
    let crib = Crib::new();
    fs::write(crib.path("tools/bin/n.wasm"), dummy(&resolve, world)).unwrap();
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
    let line = crib.call("n", &json!({}), &[]);
    assert_eq!(line["receipt"]["outcome"], "trap", "linked, started, and ended by its own trap: {line}");
}

#[test]
fn everything_in_the_world_of_rich_tools_is_linked() {
    let (resolve, world) = rich();
    assert!(resolve.worlds[world].imports.len() >= 7, "types and six interfaces");
    let crib = Crib::new();
    fs::write(crib.path("n.wasm"), dummy(&resolve, world)).unwrap();
    let line = crib.call("n", &json!({}), &["--tools", "n.wasm"]);
    assert_eq!(line["receipt"]["outcome"], "trap", "linked, started, and ended by its own trap: {line}");
}

#[test]
fn nothing_outside_the_world_is_linked() {
    let (resolve, world) = resolve();
    let mut outside = 0;
    for (_, interface) in &resolve.interfaces {
        let (Some(name), Some(package)) = (&interface.name, interface.package) else { continue };
        let id = resolve.packages[package].name.interface_id(name);
        let known = resolve.worlds[world].imports.keys().any(|key| resolve.name_world_key(key) == id);
        if known || id.starts_with("wasi:cli/run@") {
            continue;
        }
        outside += 1;
        // An instance with a function that no interface has: the name alone decides whether it is linked.
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
    let (command, world) = resolve();
    assert_table(&command, world, Link::All);
    let (rich, world) = rich();
    assert_table(&rich, world, Link::Tools);
}

#[test]
fn every_item_of_the_contract_is_documented() {
    const WORDS: [&str; 8] = ["package ", "world ", "interface ", "import ", "export ", "record ", "variant ", "enum "];
    for file in ["command.wit", "tool.wit"] {
        let text = fs::read_to_string(wit().join(file)).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            // Fields, cases and functions stand by themselves on a line that ends so.
            let inner = line.ends_with(',') || (line.ends_with(';') && line.contains(": func("));
            let item = WORDS.iter().any(|word| line.starts_with(word)) || (inner && !line.starts_with("///"));
            assert!(!item || lines[index - 1].starts_with("///"), "{file}: not documented: {line}");
        }
    }
}
