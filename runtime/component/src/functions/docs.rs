//! WIT doc comments of functions and types, from the custom section `package-docs`: a version byte and JSON. Only tools that
//! embed it write this section.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Name of the section.
pub(super) const SECTION: &str = "package-docs";
/// Maximum bytes of the section that are read.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Supported versions of the format.
const VERSIONS: [u8; 2] = [0, 1];
/// Maximum characters of one text; the rest is cut.
const MAX_CHARS: usize = 4000;

/// Doc comments of a component.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Docs {
    #[serde(default)]
    worlds: BTreeMap<String, World>,
    #[serde(default)]
    interfaces: BTreeMap<String, Interface>,
}

#[derive(Debug, Default, Deserialize)]
struct World {
    #[serde(default)]
    interfaces: BTreeMap<String, Interface>,
    #[serde(default)]
    interface_exports: BTreeMap<String, Interface>,
    #[serde(default)]
    funcs: BTreeMap<String, Text>,
    #[serde(default)]
    func_exports: BTreeMap<String, Text>,
}

#[derive(Debug, Default, Deserialize)]
struct Interface {
    #[serde(default)]
    funcs: BTreeMap<String, Text>,
    #[serde(default)]
    types: BTreeMap<String, Named>,
}

/// Doc comment of a function. Version 0 of the format has the text without an object around it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(Option<String>),
    Object {
        #[serde(default)]
        docs: Option<String>,
    },
}

#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(default)]
    docs: Option<String>,
    #[serde(default)]
    items: BTreeMap<String, String>,
}

impl Docs {
    /// Reads the section. A section that is not understood has no docs.
    pub(super) fn read(section: &[u8]) -> Self {
        match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) && json.len() <= MAX_BYTES => {
                serde_json::from_slice(json).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    /// Returns the docs for functions outside an interface, from the world that documents most of them.
    pub(super) fn of_world(&self, exports: &[&str]) -> InterfaceDocs<'_> {
        let documented = |world: &&World| {
            let documents = |name: &&&str| world.func_exports.contains_key(**name) || world.funcs.contains_key(**name);
            exports.iter().filter(documents).count()
        };
        let world = self.worlds.values().max_by_key(documented);
        let functions = world.map(|world| vec![&world.func_exports, &world.funcs]).unwrap_or_default();
        InterfaceDocs { functions, interface: None }
    }

    /// Returns the docs of an exported interface. The section belongs to one package and does not name it: if the component
    /// exports interfaces of several packages, none is documented.
    pub(super) fn of_interface(&self, export: &str, exports: &[&str]) -> InterfaceDocs<'_> {
        let (package, short) = parts(export);
        let is_other = |other: &&str| parts(other).0.is_some_and(|of| Some(of) != package);
        let is_of_package = package.is_some() && !exports.iter().any(is_other);
        let in_worlds = || self.worlds.values().flat_map(|world| [&world.interface_exports, &world.interfaces]);
        let interface = match package {
            Some(_) => self.interfaces.get(short).filter(|_| is_of_package),
            None => in_worlds().find_map(|all| all.get(short)),
        };
        InterfaceDocs { functions: interface.map(|it| &it.funcs).into_iter().collect(), interface }
    }
}

/// Splits the name of an exported interface into its package, if it has one, and the interface.
fn parts(export: &str) -> (Option<&str>, &str) {
    let unversioned = export.split('@').next().unwrap_or(export);
    match unversioned.rsplit_once('/') {
        Some((package, short)) => (Some(package), short),
        None => (None, unversioned),
    }
}

/// Docs for one interface, or for a world's functions.
pub(super) struct InterfaceDocs<'a> {
    functions: Vec<&'a BTreeMap<String, Text>>,
    interface: Option<&'a Interface>,
}

impl InterfaceDocs<'_> {
    pub(super) fn function(&self, name: &str) -> Option<String> {
        match self.functions.iter().find_map(|all| all.get(name))? {
            Text::Plain(docs) | Text::Object { docs } => cleaned(docs.as_deref()?),
        }
    }

    pub(super) fn ty(&self, name: &str) -> Option<String> {
        cleaned(self.interface?.types.get(name)?.docs.as_deref()?)
    }

    pub(super) fn member(&self, ty: &str, member: &str) -> Option<String> {
        cleaned(self.interface?.types.get(ty)?.items.get(member)?)
    }
}

fn cleaned(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(MAX_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docs(json: &str) -> Docs {
        Docs::read(&[b"\x01", json.as_bytes()].concat())
    }

    #[test]
    fn docs_of_one_package_are_not_those_of_another() {
        let docs = docs(r#"{"interfaces":{"t":{"funcs":{"go":{"docs":"Deletes nothing."},"old":"Older."}}}}"#);
        let found = |export, exports: &[&str], name| docs.of_interface(export, exports).function(name);
        assert_eq!(found("a:b/t@1.0.0", &["a:b/t@1.0.0", "f"], "go").as_deref(), Some("Deletes nothing."));
        assert_eq!(found("a:b/t", &["a:b/t"], "old").as_deref(), Some("Older."));
        assert_eq!(found("a:b/t", &["a:b/t", "c:d/t"], "go"), None);
        assert_eq!(found("c:d/t", &["a:b/t", "c:d/t"], "go"), None);
    }

    #[test]
    fn the_world_that_documents_most_exports_counts() {
        let docs = docs(
            r#"{"worlds":{"a":{"func_exports":{"run":{"docs":"Of a."}}},
                "b":{"func_exports":{"run":{"docs":"Of b."},"stop":{"docs":"Stops."}}}}}"#,
        );
        assert_eq!(docs.of_world(&["run", "stop"]).function("run").as_deref(), Some("Of b."));
    }

    #[test]
    fn docs_that_are_malformed_or_too_long_are_dropped_or_cut() {
        for section in [&b""[..], b"\x02{}", b"\x01{", b"\x01[]", &[&b"\x01"[..], &vec![b' '; MAX_BYTES + 1]].concat()]
        {
            assert!(Docs::read(section).interfaces.is_empty());
        }
        let long = format!(r#"{{"interfaces":{{"t":{{"funcs":{{"go":"{}"}}}}}}}}"#, "x".repeat(MAX_CHARS + 1));
        let found = docs(&long).of_interface("a:b/t", &["a:b/t"]).function("go");
        assert_eq!(found.map(|text| text.len()), Some(MAX_CHARS));
    }
}
