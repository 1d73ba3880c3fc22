//! Graph of a schema's subschemas. Subschemas are found by position, not by name: an argument may have the name of a
//! keyword, and a value may look like a schema. Each subschema is visited once, regardless of the number of references.

use std::collections::HashMap;
use std::ptr::from_ref;

use serde_json::Value;

/// Relation between the value of a subschema and the value of the schema that contains or references it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Same value.
    InPlace,
    /// Part of the value without a name in the schema: an item, or a member with any name.
    Element,
    /// Member with a name in the schema.
    Member,
    /// Value that is not part of the schema's value.
    Detached,
}

use Relation::{Detached, Element, InPlace, Member};

/// Keywords with a subschema or an array of subschemas.
const ONE_OR_SEVERAL: [(&str, Relation); 16] = [
    ("allOf", InPlace),
    ("anyOf", InPlace),
    ("oneOf", InPlace),
    ("not", InPlace),
    ("if", InPlace),
    ("then", InPlace),
    ("else", InPlace),
    ("items", Element),
    ("prefixItems", Element),
    ("additionalItems", Element),
    ("unevaluatedItems", Element),
    ("contains", Element),
    ("additionalProperties", Element),
    ("unevaluatedProperties", Element),
    ("propertyNames", Detached),
    ("contentSchema", Detached),
];
/// Keywords with an object of subschemas.
const BY_NAME: [(&str, Relation); 6] = [
    ("properties", Member),
    ("patternProperties", Element),
    ("dependentSchemas", InPlace),
    ("dependencies", InPlace),
    ("$defs", Detached),
    ("definitions", Detached),
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 4] = ["$anchor", "$dynamicAnchor", "$id", "id"];

/// Graph of a schema's subschemas. The first node is the schema itself.
pub(super) struct SchemaGraph<'a> {
    nodes: Vec<Node<'a>>,
    indices: HashMap<*const Value, usize>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// First reference without a target.
    unresolved: Option<&'a str>,
}

/// Subschema.
pub(super) struct Node<'a> {
    pub(super) schema: &'a Value,
    pub(super) edges: Vec<Edge<'a>>,
}

/// Edge from a subschema to one that it contains or references.
pub(super) struct Edge<'a> {
    pub(super) relation: Relation,
    /// Name of the subschema, for keywords with an object that holds subschemas.
    pub(super) name: Option<&'a str>,
    pub(super) to: usize,
}

impl<'a> SchemaGraph<'a> {
    /// Creates the graph of a schema.
    pub(super) fn of(root: &'a Value) -> Self {
        let mut graph = Self { nodes: Vec::new(), indices: HashMap::new(), anchors: anchors(root), unresolved: None };
        graph.insert(root);
        let mut index = 0;
        while let Some(node) = graph.nodes.get(index) {
            graph.nodes[index].edges = graph.edges(node.schema);
            index += 1;
        }
        graph
    }

    /// Returns all subschemas.
    pub(super) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// Returns the first reference without a target.
    pub(super) fn unresolved(&self) -> Option<&'a str> {
        self.unresolved
    }

    /// Returns the index of a subschema; `None` if the value is not a subschema.
    pub(super) fn index_of(&self, value: &Value) -> Option<usize> {
        self.indices.get(&from_ref(value)).copied()
    }

    /// Returns for each node the sources of its incoming edges with these relations, one entry per edge.
    pub(super) fn predecessors(&self, relations: &[Relation]) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            let edges = node.edges.iter().filter(|edge| relations.contains(&edge.relation));
            edges.for_each(|edge| predecessors[edge.to].push(index));
        }
        predecessors
    }

    /// Marks the nodes that reach a node with this property over edges with these relations, including the nodes with
    /// the property.
    pub(super) fn reaching(&self, has_property: impl Fn(&Value) -> bool, relations: &[Relation]) -> Vec<bool> {
        let predecessors = self.predecessors(relations);
        let start = (0..self.nodes.len()).filter(|index| has_property(self.nodes[*index].schema)).collect();
        self.traverse(start, |index| predecessors[index].clone())
    }

    /// Marks the subschemas that apply to the same value as the root.
    pub(super) fn in_place_of_root(&self) -> Vec<bool> {
        let is_in_place = |edge: &&Edge<'_>| edge.relation == InPlace;
        self.traverse(vec![0], |index| self.nodes[index].edges.iter().filter(is_in_place).map(|edge| edge.to).collect())
    }

    fn traverse(&self, mut open: Vec<usize>, next: impl Fn(usize) -> Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut reached[index], true) {
                open.extend(next(index));
            }
        }
        reached
    }

    fn insert(&mut self, schema: &'a Value) -> usize {
        *self.indices.entry(from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node { schema, edges: Vec::new() });
            self.nodes.len() - 1
        })
    }

    fn edges(&mut self, schema: &'a Value) -> Vec<Edge<'a>> {
        let Value::Object(fields) = schema else { return Vec::new() };
        let mut found = Vec::new();
        for (keyword, relation) in ONE_OR_SEVERAL {
            match fields.get(keyword) {
                Some(Value::Array(several)) => found.extend(several.iter().map(|one| (relation, None, one))),
                Some(one) => found.push((relation, None, one)),
                None => {}
            }
        }
        for (keyword, relation) in BY_NAME {
            let named = fields.get(keyword).and_then(Value::as_object).into_iter().flatten();
            found.extend(named.map(|(name, one)| (relation, Some(name.as_str()), one)));
        }
        for reference in REFERENCES.iter().filter_map(|keyword| fields.get(*keyword)?.as_str()) {
            let targets = self.targets(reference);
            if targets.is_empty() {
                self.unresolved.get_or_insert(reference);
            }
            found.extend(targets.into_iter().map(|target| (InPlace, None, target)));
        }
        let is_schema = |(_, _, one): &(_, _, &Value)| one.is_object() || one.is_boolean();
        let edge = |(relation, name, one)| Edge { relation, name, to: self.insert(one) };
        found.into_iter().filter(is_schema).map(edge).collect()
    }

    /// Returns the targets of a reference, which is a JSON pointer from the root or an anchor.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let Some(fragment) = reference.strip_prefix('#').and_then(percent_decode) else { return Vec::new() };
        match fragment.is_empty() || fragment.starts_with('/') {
            true => self.nodes[0].schema.pointer(&fragment).into_iter().collect(),
            false => self.anchors.get(fragment.as_str()).cloned().unwrap_or_default(),
        }
    }
}

/// Returns every possible anchor with its targets, also outside of subschemas.
fn anchors(root: &Value) -> HashMap<&str, Vec<&Value>> {
    let mut anchors = HashMap::<_, Vec<_>>::new();
    for value in objects(root) {
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

/// Returns every object in a value, including the value itself.
pub(super) fn objects(root: &Value) -> impl Iterator<Item = &Value> {
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

/// Returns the first reference to another schema.
pub(super) fn outside_reference(schema: &Value) -> Option<&str> {
    references(schema).find(|reference| !reference.starts_with('#'))
}

/// Returns `true` if the schema has a reference.
pub(super) fn has_references(schema: &Value) -> bool {
    references(schema).next().is_some()
}

/// Returns every possible reference. This includes texts inside an `enum` or `const`, which sensible schemas do not have.
fn references(schema: &Value) -> impl Iterator<Item = &str> {
    objects(schema).flat_map(|value| REFERENCES.map(|keyword| value.get(keyword)?.as_str())).flatten()
}

/// Decodes the percent-encoding of a URI fragment.
fn percent_decode(fragment: &str) -> Option<String> {
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
        let graph = SchemaGraph::of(&schema);
        assert_eq!(graph.unresolved(), None);
        for title in ["one", "two", "three"] {
            let found = graph.reaching(|schema| schema.get("title") == Some(&json!(title)), &[InPlace, Member]);
            assert!(found[0], "{title}");
        }
        for reference in ["#/$defs/absent", "#three", "#/%zz", "#/x/00", "#/%ff"] {
            assert_eq!(SchemaGraph::of(&json!({"items": {"$ref": reference}})).unresolved(), Some(reference));
        }
    }

    #[test]
    fn what_is_named_like_a_keyword_is_no_schema() {
        let schema =
            json!({"properties": {"properties": {"const": {"items": {}}}, "items": true}, "enum": [{"not": {}}]});
        assert_eq!(SchemaGraph::of(&schema).nodes().len(), 3);
    }
}
