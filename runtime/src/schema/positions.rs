//! Where the subschemas of a schema stand, and which leads to which. It walks by position and never by name: an argument
//! may be called like a keyword, and a value may look like a schema. Each subschema is visited once, however many refer
//! to it.

use std::collections::HashMap;
use std::ptr::from_ref;

use serde_json::Value;

/// What the value of a subschema is to the value of the schema that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The same value.
    InPlace,
    /// A part of it that the schema does not name: an item, or a member of any name.
    Part,
    /// The member of a name.
    Member,
    /// No part of it.
    Apart,
}

use Step::{Apart, InPlace, Member, Part};

/// The keywords that hold a subschema, or several in an array.
const ONE_OR_SEVERAL: [(&str, Step); 16] = [
    ("allOf", InPlace),
    ("anyOf", InPlace),
    ("oneOf", InPlace),
    ("not", InPlace),
    ("if", InPlace),
    ("then", InPlace),
    ("else", InPlace),
    ("items", Part),
    ("prefixItems", Part),
    ("additionalItems", Part),
    ("unevaluatedItems", Part),
    ("contains", Part),
    ("additionalProperties", Part),
    ("unevaluatedProperties", Part),
    ("propertyNames", Apart),
    ("contentSchema", Apart),
];
/// The keywords that hold subschemas by name.
const BY_NAME: [(&str, Step); 6] = [
    ("properties", Member),
    ("patternProperties", Part),
    ("dependentSchemas", InPlace),
    ("dependencies", InPlace),
    ("$defs", Apart),
    ("definitions", Apart),
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 4] = ["$anchor", "$dynamicAnchor", "$id", "id"];

/// The subschemas of a schema, the schema itself first.
pub(super) struct Positions<'a> {
    nodes: Vec<Node<'a>>,
    places: HashMap<*const Value, usize>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The first reference that names nothing.
    lost: Option<&'a str>,
}

/// A subschema.
pub(super) struct Node<'a> {
    pub(super) schema: &'a Value,
    pub(super) edges: Vec<Edge<'a>>,
}

/// The way from a subschema to another.
pub(super) struct Edge<'a> {
    pub(super) step: Step,
    /// The name under which it stands, where it stands under one.
    pub(super) name: Option<&'a str>,
    pub(super) to: usize,
}

impl<'a> Positions<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut positions = Self { nodes: Vec::new(), places: HashMap::new(), anchors: anchors(root), lost: None };
        positions.place(root);
        let mut at = 0;
        while let Some(node) = positions.nodes.get(at) {
            positions.nodes[at].edges = positions.edges(node.schema);
            at += 1;
        }
        positions
    }

    pub(super) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    pub(super) fn lost(&self) -> Option<&'a str> {
        self.lost
    }

    /// The place of a subschema, if the value is one.
    pub(super) fn at(&self, value: &Value) -> Option<usize> {
        self.places.get(&from_ref(value)).copied()
    }

    /// For each, what leads to it by one of these steps, as often as it does.
    pub(super) fn before(&self, steps: &[Step]) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            node.edges.iter().filter(|edge| steps.contains(&edge.step)).for_each(|edge| before[edge.to].push(at));
        }
        before
    }

    /// What leads by these steps to one of which `holds` is true, itself included.
    pub(super) fn leading_to(&self, holds: impl Fn(&Value) -> bool, steps: &[Step]) -> Vec<bool> {
        let before = self.before(steps);
        let start = (0..self.nodes.len()).filter(|at| holds(self.nodes[*at].schema)).collect();
        self.spread(start, |at| before[at].clone())
    }

    /// The subschemas that are about the same value as the whole.
    pub(super) fn of_the_whole(&self) -> Vec<bool> {
        let in_place = |edge: &&Edge<'_>| edge.step == InPlace;
        self.spread(vec![0], |at| self.nodes[at].edges.iter().filter(in_place).map(|edge| edge.to).collect())
    }

    fn spread(&self, mut open: Vec<usize>, next: impl Fn(usize) -> Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                open.extend(next(at));
            }
        }
        reached
    }

    fn place(&mut self, schema: &'a Value) -> usize {
        *self.places.entry(from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node { schema, edges: Vec::new() });
            self.nodes.len() - 1
        })
    }

    fn edges(&mut self, schema: &'a Value) -> Vec<Edge<'a>> {
        let Value::Object(fields) = schema else { return Vec::new() };
        let mut found = Vec::new();
        for (keyword, step) in ONE_OR_SEVERAL {
            match fields.get(keyword) {
                Some(Value::Array(several)) => found.extend(several.iter().map(|one| (step, None, one))),
                Some(one) => found.push((step, None, one)),
                None => {}
            }
        }
        for (keyword, step) in BY_NAME {
            let named = fields.get(keyword).and_then(Value::as_object).into_iter().flatten();
            found.extend(named.map(|(name, one)| (step, Some(name.as_str()), one)));
        }
        for reference in REFERENCES.iter().filter_map(|keyword| fields.get(*keyword)?.as_str()) {
            let targets = self.targets(reference);
            if targets.is_empty() {
                self.lost.get_or_insert(reference);
            }
            found.extend(targets.into_iter().map(|target| (InPlace, None, target)));
        }
        let is_schema = |(_, _, one): &(_, _, &Value)| one.is_object() || one.is_boolean();
        let edge = |(step, name, one)| Edge { step, name, to: self.place(one) };
        found.into_iter().filter(is_schema).map(edge).collect()
    }

    /// What a reference names: a JSON pointer from the root, or an anchor.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let Some(fragment) = reference.strip_prefix('#').and_then(decoded) else { return Vec::new() };
        match fragment.is_empty() || fragment.starts_with('/') {
            true => self.nodes[0].schema.pointer(&fragment).into_iter().collect(),
            false => self.anchors.get(fragment.as_str()).cloned().unwrap_or_default(),
        }
    }
}

/// Every anchor, wherever it could stand.
fn anchors(root: &Value) -> HashMap<&str, Vec<&Value>> {
    let mut anchors = HashMap::<_, Vec<_>>::new();
    for value in everything(root) {
        for keyword in ANCHORS {
            let name = value.get(keyword).and_then(Value::as_str);
            let name = if keyword.ends_with("id") { name.and_then(|id| id.strip_prefix('#')) } else { name };
            if let Some(name) = name {
                anchors.entry(name).or_default().push(value);
            }
        }
    }
    anchors
}

/// Every object in a value, itself included, schema or not.
pub(super) fn everything(root: &Value) -> impl Iterator<Item = &Value> {
    let mut open = vec![root];
    std::iter::from_fn(move || {
        loop {
            match open.pop()? {
                Value::Array(items) => open.extend(items),
                object @ Value::Object(fields) => {
                    open.extend(fields.values());
                    return Some(object);
                }
                _ => {}
            }
        }
    })
}

/// A fragment without its percent signs.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut parts = fragment.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_followed_by_pointer_and_by_anchor() {
        let schema = json!({
            "properties": {
                "a": {"$ref": "#/$defs/one%20~1"}, "b": {"$ref": "#two"}, "c": {"$ref": "#"}, "d": {"$ref": "#/x/0"},
            },
            "$defs": {"one /": {"title": "one"}, "2": {"$anchor": "two", "title": "two"}},
            "x": [{"title": "three"}],
        });
        let positions = Positions::of(&schema);
        assert_eq!(positions.lost(), None);
        for title in ["one", "two", "three"] {
            let found = positions.leading_to(|schema| schema.get("title") == Some(&json!(title)), &[InPlace, Member]);
            assert!(found[0], "{title}");
        }
        for reference in ["#/$defs/absent", "#three", "#/%zz", "#/x/00", "#/%ff"] {
            assert_eq!(Positions::of(&json!({"items": {"$ref": reference}})).lost(), Some(reference));
        }
    }

    #[test]
    fn what_is_named_like_a_keyword_is_no_schema() {
        let schema =
            json!({"properties": {"properties": {"const": {"items": {}}}, "items": true}, "enum": [{"not": {}}]});
        assert_eq!(Positions::of(&schema).nodes().len(), 3);
    }
}
