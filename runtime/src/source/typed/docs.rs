//! What the WIT of a component says about its functions and types, where a tool put that into the component: the custom
//! section `package-docs`, a version byte and JSON.

use std::collections::HashMap;

use serde::Deserialize;

/// The name of the section.
pub(super) const SECTION: &str = "package-docs";
/// The most bytes of it that are read.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// The versions that are understood.
const VERSIONS: [u8; 2] = [0, 1];
/// The most characters of one text.
const LONGEST: usize = 4000;

/// The texts of a component.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Docs {
    #[serde(default)]
    worlds: HashMap<String, World>,
    #[serde(default)]
    interfaces: HashMap<String, Interface>,
}

#[derive(Debug, Default, Deserialize)]
struct World {
    #[serde(default)]
    interfaces: HashMap<String, Interface>,
    #[serde(default)]
    interface_exports: HashMap<String, Interface>,
    #[serde(default)]
    funcs: HashMap<String, Text>,
    #[serde(default)]
    func_exports: HashMap<String, Text>,
}

#[derive(Debug, Default, Deserialize)]
struct Interface {
    #[serde(default)]
    funcs: HashMap<String, Text>,
    #[serde(default)]
    types: HashMap<String, Named>,
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
    items: HashMap<String, String>,
}

impl Docs {
    /// Reads the section. One that is not understood says nothing.
    pub(super) fn read(section: &[u8]) -> Self {
        match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) && json.len() <= MOST_BYTES => {
                serde_json::from_slice(json).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    /// What is said of the functions that worlds export alone.
    pub(super) fn of_world(&self) -> OfInterface<'_> {
        let functions = self.worlds.values().flat_map(|world| [&world.func_exports, &world.funcs]).collect();
        OfInterface { functions, interface: None }
    }

    /// What is said of an exported interface.
    pub(super) fn of_interface(&self, export: &str) -> OfInterface<'_> {
        let unversioned = export.split('@').next().unwrap_or(export);
        let short = unversioned.rsplit('/').next().unwrap_or(unversioned);
        let in_worlds = || self.worlds.values().flat_map(|world| [&world.interface_exports, &world.interfaces]);
        let interface = self.interfaces.get(short).or_else(|| in_worlds().find_map(|all| all.get(short)));
        OfInterface { functions: interface.map(|it| &it.funcs).into_iter().collect(), interface }
    }
}

/// What is said of one interface.
pub(super) struct OfInterface<'a> {
    functions: Vec<&'a HashMap<String, Text>>,
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
    (!text.is_empty()).then(|| text.chars().take(LONGEST).collect())
}
