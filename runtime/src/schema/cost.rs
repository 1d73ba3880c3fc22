//! Bounds on the cost of validation, computed from the schema alone: the number of subschemas applied to the same
//! value, and the maximum length of an in-place subschema chain. Descending into the value is bounded by its depth, so
//! a schema may refer to itself below the value, as schemas of trees do.

use serde_json::Value;

use super::graph::{Node, Relation, SchemaGraph, has_references, objects};

/// Maximum number of subschemas applied to one value.
const MAX_CHECKS: u64 = 100_000;
/// Maximum length of a chain of in-place subschemas: the number of stack frames per value level.
const MAX_CHAIN_LEN: usize = 32;
/// Keywords that evaluate the adjacent subschemas again, also those that contain such keywords themselves.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Factor for the cost of subschemas adjacent to an [`UNEVALUATED`] keyword.
const UNEVALUATED_COST: u64 = 3;

/// Rejects a schema that might keep validation from terminating or exhaust the stack.
///
/// # Errors
///
/// A message with the reason.
pub(super) fn check(schema: &Value, graph: &SchemaGraph<'_>) -> Result<(), String> {
    if let Some(unresolved) = graph.unresolved() {
        return Err(format!("`$ref` {unresolved:?} does not exist in the schema"));
    }
    if has_references(schema) && has_inner_base(schema) {
        return Err("an inner `$id` would change what its references mean; remove it".to_owned());
    }
    let nodes = graph.nodes();
    let predecessors = graph.predecessors(&[Relation::InPlace]);
    let in_place = |node: &Node<'_>| node.edges.iter().filter(|edge| edge.relation == Relation::InPlace).count();
    let mut pending: Vec<usize> = nodes.iter().map(in_place).collect();
    // Topological order, from the nodes without in-place subschemas to the nodes that contain them.
    let mut order: Vec<usize> = (0..nodes.len()).filter(|index| pending[*index] == 0).collect();
    let (mut checks, mut chain) = (vec![1_u64; nodes.len()], vec![0; nodes.len()]);
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        if checks[node] > MAX_CHECKS {
            return Err(format!("its references cause more than {MAX_CHECKS} checks of one value"));
        }
        if chain[node] > MAX_CHAIN_LEN {
            return Err(format!("its references chain more than {MAX_CHAIN_LEN} subschemas for one value"));
        }
        for &parent in &predecessors[node] {
            let is_unevaluated = UNEVALUATED.iter().any(|keyword| nodes[parent].schema.get(keyword).is_some());
            checks[parent] += checks[node] * if is_unevaluated { UNEVALUATED_COST } else { 1 };
            chain[parent] = chain[parent].max(chain[node] + 1);
            pending[parent] -= 1;
            if pending[parent] == 0 {
                order.push(parent);
            }
        }
    }
    if order.len() < nodes.len() {
        return Err("its references form a cycle for one value".to_owned());
    }
    Ok(())
}

/// Returns `true` if a subschema has its own base URI, which would change the targets of references in it.
fn has_inner_base(schema: &Value) -> bool {
    let old = schema.get("$schema").and_then(Value::as_str).is_some_and(|draft| draft.contains("draft-04"));
    let keyword = if old { "id" } else { "$id" };
    let based = |inner: &Value| inner.get(keyword).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
    objects(schema).skip(1).any(based)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn check(schema: &Value) -> Result<(), String> {
        super::check(schema, &SchemaGraph::of(schema))
    }

    /// Returns a schema with a chain of definitions; `link` creates each reference to the next.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
        let reference = |n: usize| json!({"$ref": format!("#/$defs/d{n}")});
        let mut defs: Map<_, _> = (0..length).map(|n| (format!("d{n}"), link(reference(n + 1)))).collect();
        defs.insert(format!("d{length}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    #[test]
    fn references_that_multiply_are_refused_before_anything_is_checked() {
        let message = "its references cause more than 100000 checks of one value";
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(check(&chain(40, |next| json!({keyword: [next, next]}))).unwrap_err(), message);
            check(&chain(10, |next| json!({keyword: [next, next]}))).unwrap();
        }
        let again = |next| json!({"allOf": [next], "unevaluatedProperties": false});
        assert_eq!(check(&chain(12, again)).unwrap_err(), message);
    }

    #[test]
    fn a_chain_that_would_exhaust_the_stack_is_refused() {
        let message = "its references chain more than 32 subschemas for one value";
        assert_eq!(check(&chain(20_000, |next| next)).unwrap_err(), message);
        check(&chain(30, |next| next)).unwrap();
        check(&chain(20_000, |next| json!({"properties": {"a": next}}))).unwrap();
    }

    #[test]
    fn a_reference_leads_back_only_by_a_step_into_the_value() {
        let message = "its references form a cycle for one value";
        for schema in [
            json!({"$ref": "#"}),
            json!({"$recursiveRef": "#"}),
            json!({"anyOf": [{"type": "null"}, {"$ref": "#"}]}),
            json!({"properties": {"a": {"$ref": "#a"}}, "$defs": {"a": {"$anchor": "a", "not": {"$ref": "#/$defs/a"}}}}),
        ] {
            assert_eq!(check(&schema).unwrap_err(), message, "{schema}");
        }
        let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "left": {"$ref": "#"}},
            "additionalProperties": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        }}});
        check(&tree).unwrap();
    }

    #[test]
    fn a_reference_means_what_it_was_followed_as() {
        let inner = json!({"$id": "http://a/", "$ref": "#/$defs/b", "$defs": {"b": {}}});
        let schema = json!({"items": inner, "$defs": {"b": {}}});
        assert!(check(&schema).unwrap_err().contains("inner `$id`"));
        let mut whole = inner;
        check(&whole).unwrap();
        whole["$ref"] = json!("#/$defs/c");
        assert_eq!(check(&whole).unwrap_err(), "`$ref` \"#/$defs/c\" does not exist in the schema");
    }
}
