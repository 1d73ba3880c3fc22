//! Schemas that apply to one value together, by `allOf` or beside a reference, and the members of an object that they
//! state.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::stub::reader::{Place, Reader};
use crate::stub::shape::{Field, Object, Type};

/// Maximum number of schemas that are merged for one value.
const MAX_MERGED: usize = 32;
/// Maximum bytes of a field's name. An object with a longer or an empty one is open.
const MAX_NAME: usize = 200;
/// Maximum of a bound that is stated: larger ones seldom matter to a caller.
const MAX_BOUND: f64 = 1e9;

/// Keywords that have a part in a type.
const STRUCTURE: [&str; 14] = [
    "$ref",
    "type",
    "const",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
    "allOf",
    "anyOf",
    "oneOf",
    "nullable",
];
/// Keywords for the parts of an object or a list.
const MEMBERS: [&str; 6] =
    ["properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems"];

/// Returns `true` if a schema has a part in a type by other keywords than these.
pub(super) fn has_structure(schema: &Map<String, Value>, except: &[&str]) -> bool {
    STRUCTURE.iter().any(|keyword| schema.contains_key(*keyword) && !except.contains(keyword))
}

/// Returns `true` if a schema is a reference and states nothing else about the type.
pub(super) fn is_reference(schema: &Map<String, Value>) -> bool {
    schema.contains_key("$ref") && !has_structure(schema, &["$ref"])
}

/// Returns the target of a reference by JSON pointer within a schema.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Schemas that apply to the same value.
#[derive(Clone)]
pub(super) struct Conjunction<'a>(Vec<&'a Map<String, Value>>);

impl<'a> Conjunction<'a> {
    /// Returns a schema with those that it includes.
    pub(super) fn of(root: &'a Value, schema: &'a Map<String, Value>) -> Self {
        Self(Vec::new()).and(root, schema)
    }

    /// Returns the schemas together with another and those that it includes.
    pub(super) fn and(&self, root: &'a Value, schema: &'a Map<String, Value>) -> Self {
        let mut all = self.clone();
        all.insert(root, schema);
        all
    }

    fn insert(&mut self, root: &'a Value, schema: &'a Map<String, Value>) {
        if self.0.len() >= MAX_MERGED || self.0.iter().any(|known| std::ptr::eq(*known, schema)) {
            return;
        }
        self.0.push(schema);
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
        let included = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        target.into_iter().chain(included).filter_map(Value::as_object).for_each(|one| self.insert(root, one));
    }

    /// Returns the values of a keyword.
    pub(super) fn values(&self, keyword: &str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter_map(move |schema| schema.get(keyword))
    }

    /// Returns the number of schemas with a keyword.
    pub(super) fn count(&self, keyword: &str) -> usize {
        self.values(keyword).count()
    }

    /// Returns `true` if a schema states parts of an object or a list.
    pub(super) fn has_members(&self) -> bool {
        MEMBERS.iter().any(|keyword| self.count(keyword) > 0)
    }

    /// Returns the kinds of values that the keywords are for.
    pub(super) fn implied(&self) -> Vec<&'static str> {
        let kind = |keyword: &&str| if keyword.ends_with("tems") { "array" } else { "object" };
        MEMBERS.iter().find(|keyword| self.count(keyword) > 0).map(kind).into_iter().collect()
    }
}

impl<'a> Reader<'a> {
    /// Returns the type of an object. Without a word about its fields it has any.
    pub(super) fn object(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        let required: HashSet<&str> =
            all.values("required").filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
        let mut names: Vec<&str> = Vec::new();
        let mut schemas: HashMap<&str, Vec<&'a Value>> = HashMap::new();
        let stated = all.values("properties").filter_map(Value::as_object).flatten();
        for (name, schema) in stated.take(self.left) {
            let known = schemas.entry(name).or_default();
            if known.is_empty() {
                names.push(name);
            }
            known.push(schema);
        }
        let listed = all.values("required").filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        for name in listed.take(self.left) {
            if schemas.insert(name, schemas.get(name).cloned().unwrap_or_default()).is_none() {
                names.push(name);
            }
        }
        let mut rest = self.rest(all, place);
        let mut fields = Vec::new();
        for name in names {
            if self.left == 0 {
                return Type::Map(Box::new(Type::Any));
            }
            let value = self.member(&schemas[name], place);
            if name.is_empty() || name.len() > MAX_NAME {
                rest = Some(Type::Any);
            } else if value != Type::Never {
                fields.push(field(name, value, required.contains(name), &schemas[name]));
            }
        }
        let is_closed = all.values("additionalProperties").any(|value| *value == Value::Bool(false));
        match rest {
            _ if !fields.is_empty() || rest.is_none() && is_closed => {
                Type::Object(Object { fields, rest: rest.map(Box::new) })
            }
            rest => Type::Map(Box::new(rest.unwrap_or(Type::Any))),
        }
    }

    /// Returns the type of fields with other names than the stated ones; `None` if no schema states any.
    fn rest(&mut self, all: &Conjunction<'a>, place: Place) -> Option<Type<'a>> {
        let patterns = all.values("patternProperties").filter_map(Value::as_object).flat_map(Map::values);
        let further = all.values("additionalProperties").chain(patterns);
        let schemas: Vec<_> = further.filter(|schema| **schema != Value::Bool(false)).take(MAX_MERGED).collect();
        let types: Vec<_> = schemas.into_iter().map(|schema| self.read(schema, place.below())).collect();
        (!types.is_empty()).then(|| Type::union(types))
    }

    fn member(&mut self, schemas: &[&'a Value], place: Place) -> Type<'a> {
        match schemas {
            [] => {
                self.left = self.left.saturating_sub(1);
                Type::Any
            }
            [one] => self.read(one, place.below()),
            [first, others @ ..] if others.iter().all(|one| one == first) => self.read(first, place.below()),
            several => {
                self.left = self.left.saturating_sub(1);
                let fields = several.iter().filter_map(|one| one.as_object());
                let none = Conjunction(Vec::new());
                let all = fields.fold(none, |all, one| all.and(self.root, one));
                self.bounded(&all, place.below())
            }
        }
    }
}

fn field<'a>(name: &'a str, value: Type<'a>, is_required: bool, schemas: &[&'a Value]) -> Field<'a> {
    let first = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword));
    let bound = |keyword: &str| first(keyword).filter(|bound| bound.as_f64().is_some_and(|n| n.abs() <= MAX_BOUND));
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(minimum), Some(maximum)) => Some(format!("{minimum}..{maximum}")),
        (None, Some(maximum)) => Some(format!("<={maximum}")),
        _ => None,
    };
    let description = first("description").and_then(Value::as_str);
    Field { name, value, is_required, default: first("default"), range, description }
}
