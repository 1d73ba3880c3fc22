//! JSON values as a validator walks them under a clock: each step is counted, and once the time is over every array and
//! object is at its end and every text is empty, so that the walk runs out. What it then says means nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::clock::step;

/// The bytes of a text that count as one step.
const BYTES: usize = 64;
/// The steps of one comparison with the values of a schema, which may be as large as the schema.
const COMPARISON: usize = 16;
/// The most items of an array that are compared each with each.
const MAX_PAIRWISE: usize = 15;

/// The representation: `serde_json` values, watched.
pub(super) struct Watched;

impl Json for Watched {
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

impl<'a> Node<'a, Watched> for &'a Value {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        Value::as_object(self).map(Members)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        Value::as_array(self).map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(text) = self else { return None };
        Some(Cow::Borrowed(if step(1 + text.len() / BYTES) { text } else { "" }))
    }

    fn as_number(&self) -> Option<&'a Number> {
        <&Value as Node<SerdeJson>>::as_number(self)
    }

    fn as_boolean(&self) -> Option<bool> {
        Value::as_bool(self)
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn json_type(&self) -> JsonType {
        step(1);
        <&Value as Node<SerdeJson>>::json_type(self)
    }

    fn string_length(&self) -> Option<u64> {
        let Value::String(text) = self else { return None };
        if step(1 + text.len() / BYTES) { <&Value as Node<SerdeJson>>::string_length(self) } else { Some(0) }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let steps = match self {
            Value::String(text) => 1 + text.len() / BYTES,
            Value::Array(_) | Value::Object(_) => COMPARISON,
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

/// The members of an object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// The name of a member.
pub(super) struct Name<'a>(&'a str);

impl AsRef<str> for Name<'_> {
    fn as_ref(&self) -> &str {
        // A name is looked at once for each pattern.
        if step(1 + self.0.len() / 2) { self.0 } else { "" }
    }
}

impl<'a> From<Name<'a>> for Cow<'a, str> {
    fn from(name: Name<'a>) -> Self {
        Cow::Borrowed(name.0)
    }
}

/// The members of an object, until the time is over.
pub(super) struct MembersIter<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (Name<'a>, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        step(1).then_some((Name(name), value))
    }
}

impl<'a> Object<'a, Watched> for Members<'a> {
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

/// The items of an array.
pub(super) struct Items<'a>(&'a [Value]);

/// The items of an array, until the time is over.
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

impl<'a> Array<'a, Watched> for Items<'a> {
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
            true => step(COMPARISON * self.0.len()) && <&[Value] as Array<SerdeJson>>::is_unique(&self.0),
            false => is_unique(self.0),
        }
    }
}

/// Compares only items of one hash. The hash has keys that nobody knows: where it had none, a stranger could choose items
/// that all share one.
fn is_unique(items: &[Value]) -> bool {
    let keys = RandomState::new();
    let mut seen = HashMap::<u64, Vec<&Value>>::with_capacity(items.len());
    items.iter().all(|item| {
        let mut hasher = keys.build_hasher();
        hash(item, &keys, &mut hasher);
        let alike = seen.entry(hasher.finish()).or_default();
        let is_new = alike.iter().all(|other| step(COMPARISON) && !Node::<SerdeJson>::equals_value(other, item));
        alike.push(item);
        is_new && step(1)
    })
}

/// Hashes a value so that equal ones have one hash: numbers by what they are worth, members in any order.
fn hash(value: &Value, keys: &RandomState, hasher: &mut impl Hasher) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(value) => value.hash(hasher),
        // The sum makes one zero of two.
        Value::Number(number) => hasher.write_u64((number.as_f64().unwrap_or(f64::NAN) + 0.0).to_bits()),
        Value::String(text) => {
            step(text.len() / BYTES);
            text.hash(hasher);
        }
        Value::Array(items) => {
            hasher.write_usize(items.len());
            items.iter().take_while(|_| step(1)).for_each(|item| hash(item, keys, hasher));
        }
        Value::Object(members) => {
            let each = members.iter().take_while(|_| step(1)).map(|(name, value)| {
                let mut hasher = keys.build_hasher();
                name.hash(&mut hasher);
                hash(value, keys, &mut hasher);
                hasher.finish()
            });
            hasher.write_u64(each.fold(0, u64::wrapping_add));
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
