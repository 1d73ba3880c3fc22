//! Root object of a `tools.json`. Entries stay text, so that a faulty one does not affect the others.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The only member that the format defines.
const TOOLS: &str = "tools";

/// Manifest with entries that are not parsed yet.
#[derive(Debug, Default)]
pub(super) struct Root<'t> {
    pub(super) tools: Vec<&'t RawValue>,
    pub(super) unknown: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Root<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Root<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `tools`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut tools: Option<Option<Vec<&'de RawValue>>> = None;
        let mut unknown = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if key != TOOLS {
                unknown.insert(key, members.next_value()?);
            } else if tools.is_some() {
                return Err(de::Error::duplicate_field(TOOLS));
            } else {
                tools = Some(members.next_value()?);
            }
        }
        Ok(Root { tools: tools.flatten().unwrap_or_default(), unknown })
    }
}
