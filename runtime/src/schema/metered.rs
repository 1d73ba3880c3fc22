//! Representation of JSON values for a validator under a clock. Each access counts steps, so that each keyword of a schema
//! costs at least one: a violation that a keyword finds takes time and memory. After the time is over, every array and
//! object appears to end and every text appears empty, so that the validator stops soon; its result is then meaningless.
//! `contributions/jsonschema.patch` would let the validator stop itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::clock::step;

/// Number of text bytes per step.
const BYTES_PER_STEP: usize = 64;
/// Number of steps per comparison with a schema value, which may be as large as the schema.
const STEPS_PER_COMPARISON: usize = 16;
/// Maximum number of items per array for pairwise comparison.
const MAX_PAIRWISE: usize = 15;

/// Representation of `serde_json` values that counts steps.
pub(super) struct MeteredJson;

impl Json for MeteredJson {
    type Node<'a> = &'a Value;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(&Value) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, f)
    }
}

impl<'a> Node<'a, MeteredJson> for &'a Value {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        step(1);
        Value::as_object(self).map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        step(1);
        Value::as_array(self).map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(text) = self else { return None };
        Some(Cow::Borrowed(if step(1 + text.len() / BYTES_PER_STEP) { text } else { "" }))
    }

    fn as_number(&self) -> Option<&'a Number> {
        step(1);
        <&Value as Node<SerdeJson>>::as_number(self)
    }

    fn as_boolean(&self) -> Option<bool> {
        step(1);
        Value::as_bool(self)
    }

    fn is_null(&self) -> bool {
        step(1);
        Value::is_null(self)
    }

    fn json_type(&self) -> JsonType {
        step(1);
        <&Value as Node<SerdeJson>>::json_type(self)
    }

    fn string_length(&self) -> Option<u64> {
        let Value::String(text) = self else { return None };
        if step(1 + text.len() / BYTES_PER_STEP) { <&Value as Node<SerdeJson>>::string_length(self) } else { Some(0) }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let steps = match self {
            Value::String(text) => 1 + text.len() / BYTES_PER_STEP,
            Value::Array(_) | Value::Object(_) => STEPS_PER_COMPARISON,
            _ => 1,
        };
        step(steps) && <&Value as Node<SerdeJson>>::equals_value(self, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        <&Value as Node<SerdeJson>>::identity(self)
    }
}

/// Object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// Name of a member.
pub(super) struct Name<'a>(&'a str);

impl AsRef<str> for Name<'_> {
    fn as_ref(&self) -> &str {
        // Each pattern calls this once per name.
        if step(1 + self.0.len() / 2) { self.0 } else { "" }
    }
}

impl<'a> From<Name<'a>> for Cow<'a, str> {
    fn from(name: Name<'a>) -> Self {
        Cow::Borrowed(name.0)
    }
}

/// Iterator over the members of an object, until the time is over.
pub(super) struct MembersIter<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (Name<'a>, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        step(1).then_some((Name(name), value))
    }
}

impl<'a> Object<'a, MeteredJson> for Members<'a> {
    type Node = &'a Value;
    type MemberName = Name<'a>;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<&'a Value> {
        step(1);
        self.0.get(key.as_str())
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

/// Array.
pub(super) struct Items<'a>(&'a [Value]);

/// Iterator over the items of an array, until the time is over.
pub(super) struct ItemsIter<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for ItemsIter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        self.0.next().filter(|_| step(1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.0.size_hint().1)
    }
}

impl<'a> Array<'a, MeteredJson> for Items<'a> {
    type Node = &'a Value;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        match self.0.len() <= MAX_PAIRWISE {
            true => step(STEPS_PER_COMPARISON * self.0.len()) && <&[Value] as Array<SerdeJson>>::is_unique(&self.0),
            false => is_unique(self.0),
        }
    }
}

/// Returns `true` if all items differ. Only items with equal hashes are compared. The hash has random keys, so that an
/// attacker cannot construct items with equal hashes.
fn is_unique(items: &[Value]) -> bool {
    let keys = RandomState::new();
    let mut seen = HashMap::<u64, Vec<&Value>>::with_capacity(items.len());
    items.iter().all(|item| {
        let mut hasher = keys.build_hasher();
        hash(item, &keys, &mut hasher);
        let candidates = seen.entry(hasher.finish()).or_default();
        let is_new =
            candidates.iter().all(|other| step(STEPS_PER_COMPARISON) && !Node::<SerdeJson>::equals_value(other, item));
        candidates.push(item);
        is_new && step(1)
    })
}

/// Hashes a value. Equal values have equal hashes: numbers are hashed by value, members in any order.
fn hash(value: &Value, keys: &RandomState, hasher: &mut impl Hasher) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(value) => value.hash(hasher),
        // Adding zero turns negative zero into zero.
        Value::Number(number) => hasher.write_u64((number.as_f64().unwrap_or(f64::NAN) + 0.0).to_bits()),
        Value::String(text) => {
            step(text.len() / BYTES_PER_STEP);
            text.hash(hasher);
        }
        Value::Array(items) => {
            hasher.write_usize(items.len());
            items.iter().take_while(|_| step(1)).for_each(|item| hash(item, keys, hasher));
        }
        Value::Object(members) => {
            let hashes = members.iter().take_while(|_| step(1)).map(|(name, value)| {
                let mut hasher = keys.build_hasher();
                name.hash(&mut hasher);
                hash(value, keys, &mut hasher);
                hasher.finish()
            });
            hasher.write_u64(hashes.fold(0, u64::wrapping_add));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_unique_as_json_compares_them() {
        let filled = |mut items: Vec<Value>| {
            items.extend((0..20).map(|n| json!([n])));
            is_unique(&items)
        };
        assert!(filled(vec![]) && filled(vec![json!({"a": 1}), json!({"a": "1"}), json!(1), json!("1")]));
        for (one, other) in [
            (json!(1), json!(1.0)),
            (json!(0), json!(-0.0)),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1})),
            (json!([7]), json!([7])),
        ] {
            assert!(!filled(vec![one.clone(), other]), "{one}");
        }
    }
}
