//! Unique identifiers of interfaces and profiles, taken from a tool's source if it states them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use toolcrib::Tool;

use crate::record;

/// Identifiers of interfaces in use.
#[derive(Default)]
pub(super) struct Interfaces(HashSet<String>);

impl Interfaces {
    /// Returns the identifier that the tool's source states, or one made of the tool's if that is in use.
    pub(super) fn add(&mut self, tool: &Tool, id: &str) -> String {
        let stated = tool.origin.unknown.get("interface_id").and_then(Value::as_str);
        let stated = stated.filter(|stated| self.0.insert((*stated).to_owned()));
        stated.map_or_else(|| format!("{id}/interface"), str::to_owned)
    }
}

/// Identifiers of profiles in use.
#[derive(Default)]
pub(super) struct Profiles(HashSet<String>);

impl Profiles {
    /// Adds a profile under the identifier that the tool's source states, and returns the identifier. Tools share a profile
    /// only if its content is the same for both.
    pub(super) fn add(
        &mut self,
        profiles: &mut Vec<Value>,
        field: &str,
        (named, tool, own): (&str, &str, &str),
        profile: Value,
    ) -> String {
        let own = format!("{tool}/{own}");
        let under = |id: &str| {
            let mut fields = Map::from_iter([(field.to_owned(), json!(id))]);
            fields.extend(profile.as_object().cloned().unwrap_or_default());
            record(Value::Object(fields))
        };
        let wanted = if named.is_empty() { &own } else { named };
        let profile = under(wanted);
        if self.0.insert(wanted.to_owned()) {
            profiles.push(profile);
            return wanted.to_owned();
        }
        if profiles.contains(&profile) {
            return wanted.to_owned();
        }
        self.0.insert(own.clone());
        profiles.push(under(&own));
        own
    }
}
