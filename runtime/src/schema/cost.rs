//! What one check can cost at most, told from the schema alone: how many subschemas are about one and the same value, and
//! how many lead one into another before a step into the value is taken. Steps into the value itself are bounded by its
//! depth, so a schema of trees may refer to itself there.

use serde_json::Value;

use super::positions::{Node, Positions, Step, everything};

/// The most subschemas that one value is held against.
const MAX_CHECKS: u64 = 100_000;
/// The most that lead one into another: as many frames of the stack for each level of the value.
const MAX_CHAIN_LEN: usize = 32;
/// The keywords for which the subschemas beside them are gone through again, and again where these have one too.
const AGAIN: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
const TIMES: u64 = 3;

/// Refuses a schema whose checks could go on for ever or exhaust the stack.
///
/// # Errors
///
/// A text that says why.
pub(super) fn check(schema: &Value, positions: &Positions<'_>) -> Result<(), String> {
    if let Some(lost) = positions.lost() {
        return Err(format!("`$ref` {lost:?} names nothing in the schema"));
    }
    if super::refers(schema) && has_inner_base(schema) {
        return Err("an inner `$id` would change what its references mean; remove it".to_owned());
    }
    let nodes = positions.nodes();
    let before = positions.before(&[Step::InPlace]);
    let in_place = |node: &Node<'_>| node.edges.iter().filter(|edge| edge.step == Step::InPlace).count();
    let mut unsettled: Vec<usize> = nodes.iter().map(in_place).collect();
    // From those that lead nowhere back to those that lead to them.
    let mut settled: Vec<usize> = (0..nodes.len()).filter(|at| unsettled[*at] == 0).collect();
    let (mut checks, mut chain) = (vec![1_u64; nodes.len()], vec![0; nodes.len()]);
    let mut at = 0;
    while let Some(&after) = settled.get(at) {
        at += 1;
        if checks[after] > MAX_CHECKS {
            return Err(format!("its references multiply to more than {MAX_CHECKS} checks of one value"));
        }
        if chain[after] > MAX_CHAIN_LEN {
            return Err(format!("more than {MAX_CHAIN_LEN} of its subschemas lead one into another for one value"));
        }
        for &node in &before[after] {
            let times = if AGAIN.iter().any(|keyword| nodes[node].schema.get(keyword).is_some()) { TIMES } else { 1 };
            checks[node] += checks[after] * times;
            chain[node] = chain[node].max(chain[after] + 1);
            unsettled[node] -= 1;
            if unsettled[node] == 0 {
                settled.push(node);
            }
        }
    }
    if settled.len() < nodes.len() {
        return Err("a reference in it leads back to itself for one value".to_owned());
    }
    Ok(())
}

/// Whether a schema inside has a base of its own, from which the references in it would be followed.
fn has_inner_base(schema: &Value) -> bool {
    let old = schema.get("$schema").and_then(Value::as_str).is_some_and(|draft| draft.contains("draft-04"));
    let keyword = if old { "id" } else { "$id" };
    let based = |inner: &Value| inner.get(keyword).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
    everything(schema).skip(1).any(based)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn check(schema: &Value) -> Result<(), String> {
        super::check(schema, &Positions::of(schema))
    }

    /// Definitions of which each refers to the next in this way.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
        let reference = |n: usize| json!({"$ref": format!("#/$defs/d{n}")});
        let mut defs: Map<_, _> = (0..length).map(|n| (format!("d{n}"), link(reference(n + 1)))).collect();
        defs.insert(format!("d{length}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    #[test]
    fn references_that_multiply_are_refused_before_anything_is_checked() {
        let told = "its references multiply to more than 100000 checks of one value";
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(check(&chain(40, |next| json!({keyword: [next, next]}))).unwrap_err(), told);
            check(&chain(10, |next| json!({keyword: [next, next]}))).unwrap();
        }
        let again = |next| json!({"allOf": [next], "unevaluatedProperties": false});
        assert_eq!(check(&chain(12, again)).unwrap_err(), told);
    }

    #[test]
    fn a_chain_that_would_exhaust_the_stack_is_refused() {
        let told = "more than 32 of its subschemas lead one into another for one value";
        assert_eq!(check(&chain(20_000, |next| next)).unwrap_err(), told);
        check(&chain(30, |next| next)).unwrap();
        check(&chain(20_000, |next| json!({"properties": {"a": next}}))).unwrap();
    }

    #[test]
    fn a_reference_leads_back_only_by_a_step_into_the_value() {
        let told = "a reference in it leads back to itself for one value";
        for schema in [
            json!({"$ref": "#"}),
            json!({"$recursiveRef": "#"}),
            json!({"anyOf": [{"type": "null"}, {"$ref": "#"}]}),
            json!({"properties": {"a": {"$ref": "#a"}}, "$defs": {"a": {"$anchor": "a", "not": {"$ref": "#/$defs/a"}}}}),
        ] {
            assert_eq!(check(&schema).unwrap_err(), told, "{schema}");
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
        assert_eq!(check(&whole).unwrap_err(), "`$ref` \"#/$defs/c\" names nothing in the schema");
    }
}
