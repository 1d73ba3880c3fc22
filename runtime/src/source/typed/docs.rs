//! What the WIT of a component says about its functions and types, where a tool put that into the component: the custom
//! section `package-docs`, a version byte and JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The name of the section.
pub(super) const SECTION: &str = "package-docs";
/// The most bytes of it that are read.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The versions that are understood.
const VERSIONS: [u8; 2] = [0, 1];
/// The most characters of one text.
const MAX_CHARS: usize = 4000;

/// The texts of a component.
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

/// What is said of a function: in the first version of the format, a text alone.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Alone(Option<String>),
    Of {
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
    /// Reads the section. One that is not understood says nothing.
    pub(super) fn read(section: &[u8]) -> Self {
        match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) && json.len() <= MAX_BYTES => {
                serde_json::from_slice(json).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    /// What is said of the functions that are exported alone: by the world that speaks of most of them.
    pub(super) fn of_world(&self, exports: &[&str]) -> OfInterface<'_> {
        let spoken = |world: &&World| {
            let says = |name: &&&str| world.func_exports.contains_key(**name) || world.funcs.contains_key(**name);
            exports.iter().filter(says).count()
        };
        let world = self.worlds.values().max_by_key(spoken);
        let functions = world.map(|world| vec![&world.func_exports, &world.funcs]).unwrap_or_default();
        OfInterface { functions, interface: None }
    }

    /// What is said of an exported interface. The section is one package's and does not say whose: where the component
    /// exports interfaces of several, it is not known of which it speaks.
    pub(super) fn of_interface(&self, export: &str, exports: &[&str]) -> OfInterface<'_> {
        let (package, short) = parts(export);
        let is_other = |other: &&str| parts(other).0.is_some_and(|of| Some(of) != package);
        let is_of_package = package.is_some() && !exports.iter().any(is_other);
        let in_worlds = || self.worlds.values().flat_map(|world| [&world.interface_exports, &world.interfaces]);
        let interface = match package {
            Some(_) => self.interfaces.get(short).filter(|_| is_of_package),
            None => in_worlds().find_map(|all| all.get(short)),
        };
        OfInterface { functions: interface.map(|it| &it.funcs).into_iter().collect(), interface }
    }
}

/// The package of an exported interface, where its name has one, and the interface.
fn parts(export: &str) -> (Option<&str>, &str) {
    let unversioned = export.split('@').next().unwrap_or(export);
    match unversioned.rsplit_once('/') {
        Some((package, short)) => (Some(package), short),
        None => (None, unversioned),
    }
}

/// What is said of one interface.
pub(super) struct OfInterface<'a> {
    functions: Vec<&'a BTreeMap<String, Text>>,
    interface: Option<&'a Interface>,
}

impl OfInterface<'_> {
    pub(super) fn function(&self, name: &str) -> Option<String> {
        match self.functions.iter().find_map(|all| all.get(name))? {
            Text::Alone(docs) | Text::Of { docs } => told(docs.as_deref()?),
        }
    }

    pub(super) fn ty(&self, name: &str) -> Option<String> {
        told(self.interface?.types.get(name)?.docs.as_deref()?)
    }

    pub(super) fn member(&self, ty: &str, member: &str) -> Option<String> {
        told(self.interface?.types.get(ty)?.items.get(member)?)
    }
}

fn told(text: &str) -> Option<String> {
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
    fn what_is_said_of_one_package_is_not_told_of_another() {
        let docs = docs(r#"{"interfaces":{"t":{"funcs":{"go":{"docs":"Deletes nothing."},"old":"Older."}}}}"#);
        let told = |export, exports: &[&str], name| docs.of_interface(export, exports).function(name);
        assert_eq!(told("a:b/t@1.0.0", &["a:b/t@1.0.0", "f"], "go").as_deref(), Some("Deletes nothing."));
        assert_eq!(told("a:b/t", &["a:b/t"], "old").as_deref(), Some("Older."));
        assert_eq!(told("a:b/t", &["a:b/t", "c:d/t"], "go"), None);
        assert_eq!(told("c:d/t", &["a:b/t", "c:d/t"], "go"), None);
    }

    #[test]
    fn the_world_that_speaks_of_most_exports_is_heard() {
        let docs = docs(
            r#"{"worlds":{"a":{"func_exports":{"run":{"docs":"Of a."}}},
                "b":{"func_exports":{"run":{"docs":"Of b."},"stop":{"docs":"Stops."}}}}}"#,
        );
        assert_eq!(docs.of_world(&["run", "stop"]).function("run").as_deref(), Some("Of b."));
    }

    #[test]
    fn what_is_not_understood_or_too_long_says_nothing_or_less() {
        for section in [&b""[..], b"\x02{}", b"\x01{", b"\x01[]", &[&b"\x01"[..], &vec![b' '; MAX_BYTES + 1]].concat()]
        {
            assert!(Docs::read(section).interfaces.is_empty());
        }
        let long = format!(r#"{{"interfaces":{{"t":{{"funcs":{{"go":"{}"}}}}}}}}"#, "x".repeat(MAX_CHARS + 1));
        let told = docs(&long).of_interface("a:b/t", &["a:b/t"]).function("go");
        assert_eq!(told.map(|told| told.len()), Some(MAX_CHARS));
    }
}
