//! Model of a `toolcrib.lock`: the installed bundles with everything that an update is compared with, and the file's
//! text. A lock grants nothing: it counts only as far as the user's own records agree with it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Version of the format.
pub(crate) const FORMAT: u64 = 1;

/// Bundles installed in a folder or for the user, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    pub bundles: Vec<LockedBundle>,
}

/// Bundle in a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedBundle {
    /// Name in the lock and on the command line, unique in the lock.
    pub name: String,
    /// Reference `oci://…` with its tag, or path of a file.
    pub source: String,
    /// Version that the publisher states; `None` if the bundle has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of the manifest, as `sha256:HEX`.
    pub digest: String,
    /// Verified signers that a later release is compared with, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<String>,
    /// Requests that the person granted, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// Requests that the person did not grant, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<String>,
    /// Tools, sorted by name.
    pub tools: Vec<LockedTool>,
}

/// Tool of a bundle in a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTool {
    pub name: String,
    /// Digest of the description, as `sha256:HEX`.
    pub(crate) description: String,
    /// Digest of its arguments' schema, as `sha256:HEX`.
    pub(crate) schema: String,
    /// Digest of other facts in its definition, as `sha256:HEX`.
    pub(crate) definition: String,
    /// Capabilities that it requests, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) requests: Vec<String>,
}

/// Returns the part that names a pinned signer; the rest of a key is the key itself.
pub fn signer_name(pin: &str) -> &str {
    if pin.starts_with("key:") { pin.split(' ').next().unwrap_or(pin) } else { pin }
}

impl LockedBundle {
    /// Returns `true` if the same requests are granted and declined.
    pub(crate) fn has_grants_of(&self, other: &Self) -> bool {
        (&self.granted, &self.declined) == (&other.granted, &other.declined)
    }
}

impl Lock {
    /// Returns the bundle with a name.
    pub fn bundle(&self, name: &str) -> Option<&LockedBundle> {
        self.bundles.iter().find(|bundle| bundle.name == name)
    }

    /// Adds a bundle, in place of an earlier one with its name.
    pub(crate) fn insert(&mut self, bundle: LockedBundle) {
        self.remove(&bundle.name);
        self.bundles.push(bundle);
        self.bundles.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Removes a bundle; returns `false` if there is none of that name.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.bundles.len();
        self.bundles.retain(|bundle| bundle.name != name);
        self.bundles.len() < before
    }

    /// Formats the file. Equal locks have equal texts.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "# Installed bundles, written by `toolcrib install`, `update` and `remove`. The file grants nothing by itself.\n\
             version = {FORMAT}\n"
        );
        for bundle in &self.bundles {
            let LockedBundle { name, source, version, digest, signers, granted, declined, tools } = bundle;
            text += "\n[[bundle]]\n";
            field(&mut text, "name", name);
            field(&mut text, "source", source);
            version.iter().for_each(|version| field(&mut text, "version", version));
            field(&mut text, "digest", digest);
            for (key, values) in [("signers", signers), ("granted", granted), ("declined", declined)] {
                list(&mut text, key, values);
            }
            for LockedTool { name, description, schema, definition, requests } in tools {
                text += "\n[[bundle.tool]]\n";
                field(&mut text, "name", name);
                field(&mut text, "description", description);
                field(&mut text, "schema", schema);
                field(&mut text, "definition", definition);
                list(&mut text, "requests", requests);
            }
        }
        text
    }
}

fn field(text: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {}", quoted(value));
}

fn list(text: &mut String, key: &str, values: &[String]) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(text, "{key} = [");
    values.iter().for_each(|value| {
        let _ = writeln!(text, "  {},", quoted(value));
    });
    *text += "]\n";
}

/// Formats a basic string of TOML.
fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
