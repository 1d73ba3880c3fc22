//! Merge of the entry into a settings file's text. After every edit the new text is read again: it must hold what the
//! old one held, and the entry, or the edit is refused.

use serde_json::{Map, Value};

use super::client::{Client, Facts, SERVER};
use super::entry::{Launch, Shape};

/// Server map in the second version of opencode's settings, below the key of the first.
pub(super) const NATIVE_SERVERS: &str = "servers";

/// Entry for a client with its place.
#[derive(Debug)]
pub struct Plan {
    facts: &'static Facts,
    /// Keys from the top of the file to the entry.
    pub keys: Vec<&'static str>,
    /// Entry of the server.
    pub entry: Value,
}

/// Result of a merge.
#[derive(Debug, PartialEq)]
pub enum Merge {
    /// The file has no entry; the text has it.
    Added(String),
    /// The file has the entry.
    Present,
    /// The file has another entry; in `text` it is replaced.
    Different {
        /// Differences of the entries.
        changes: Vec<Change>,
        /// New text of the file.
        text: String,
    },
}

/// Difference between the entry of a file and the new one, in one field.
#[derive(Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// Name of the field.
    pub field: String,
    /// Value in the file. Values of fields that this program never writes are left out, since they can be secrets.
    pub old: Option<Value>,
    /// New value; `None` for a field that is removed.
    pub new: Option<Value>,
}

impl Plan {
    /// Plans the entry for a file with this text; one that cannot be read counts as empty.
    pub fn new(client: Client, launch: &Launch, text: &str) -> Self {
        let facts = client.facts();
        let document = facts.format.read(without_mark(text).1).unwrap_or_default();
        let native = facts.servers.iter().try_fold(&document, |value, key| value.get(key));
        // A server of the first version may have this name, and then has a type.
        let native = native
            .and_then(|servers| servers.get(NATIVE_SERVERS))
            .is_some_and(|servers| servers.is_object() && !servers.get("type").is_some_and(Value::is_string));
        let mut keys = facts.servers.to_vec();
        let mut shape = facts.shape;
        if shape == Shape::Local && native {
            keys.push(NATIVE_SERVERS);
            shape = Shape::LocalNative;
        }
        keys.push(SERVER);
        Self { facts, keys, entry: launch.entry(shape) }
    }

    /// Word for the format of the file.
    pub fn format(&self) -> &'static str {
        self.facts.format.as_str()
    }

    /// Returns a document with nothing but the entry.
    pub fn fragment(&self) -> String {
        self.facts.format.fragment(&self.keys, &self.entry)
    }

    /// Merges the entry into a text.
    ///
    /// # Errors
    ///
    /// The reason why the text cannot be read, or not be edited without a loss.
    pub fn merge(&self, text: &str) -> Result<Merge, String> {
        let (mark, text) = without_mark(text);
        let format = self.facts.format;
        let old = format.read(text)?;
        let found = self.find(&old)?;
        let changes = match found {
            Some(found) => changes(found, &self.entry),
            None => Vec::new(),
        };
        if found.is_some() && !changes.iter().any(|change| change.new.is_some()) {
            return Ok(Merge::Present);
        }
        let edited = format.set(text, &self.keys, &self.entry)?;
        if format.read(&edited).ok() != Some(self.expected(old.clone())) {
            return Err("its format cannot be edited without loss".to_owned());
        }
        let text = format!("{mark}{edited}");
        Ok(match found {
            Some(_) => Merge::Different { changes, text },
            None => Merge::Added(text),
        })
    }

    /// Returns the entry of a document.
    pub(super) fn find<'a>(&self, document: &'a Value) -> Result<Option<&'a Value>, String> {
        let mut value = document;
        for (depth, key) in self.keys.iter().enumerate() {
            let Value::Object(members) = value else {
                return Err(format!("`{}` must hold named values", self.keys[..depth].join(".")));
            };
            match members.get(*key) {
                Some(member) => value = member,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }

    /// Returns a document with the entry set.
    pub(super) fn expected(&self, mut document: Value) -> Value {
        let mut value = &mut document;
        for key in &self.keys {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            value = &mut value[*key];
        }
        *value = self.entry.clone();
        document
    }
}

/// Splits off a byte order mark.
pub(super) fn without_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// Returns the differences in the order of the new entry; then the fields that only the old one has. Those alone make no
/// difference, since clients and people add fields such as `env`.
fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let (none, old) = (Map::new(), old.as_object());
    let (old, new) = (old.unwrap_or(&none), new.as_object().unwrap_or(&none));
    let different = new.iter().filter(|(field, value)| old.get(*field) != Some(*value));
    let different = different.map(|(field, value)| Change {
        field: field.clone(),
        old: old.get(field).cloned(),
        new: Some(value.clone()),
    });
    let removed = old.keys().filter(|field| !new.contains_key(*field));
    different.chain(removed.map(|field| Change { field: field.clone(), old: None, new: None })).collect()
}
