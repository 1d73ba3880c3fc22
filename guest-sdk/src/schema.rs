//! Types and their JSON Schemas, as constants. The macros add the descriptions of each use of a type.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{Encoding, Error, Json, Node};

/// Type with a JSON Schema.
///
/// Derive it together with serde's `Deserialize`: doc comments become descriptions, and serde's attributes apply
/// (`rename`, `rename_all`, `default`, `skip`, `tag`, `content`, `untagged`, `transparent`, `deny_unknown_fields`).
/// `#[arg(…)]` adds bounds to a field, as it does to a parameter of a tool. A type that contains itself cannot have a
/// schema of this kind; use [`Value`] there.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib_guest::Schema;
///
/// /// Place to search.
/// #[derive(Deserialize, Schema)]
/// #[serde(deny_unknown_fields)]
/// struct Place {
///     /// Name of the city.
///     #[arg(min_length = 1)]
///     city: String,
///     /// Country code of two letters.
///     country: Option<String>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "no JSON Schema is known for `{Self}`",
    note = "derive it with `#[derive(toolcrib_guest::Schema)]`, or use `toolcrib_guest::Value` for any JSON"
)]
pub trait Schema {
    /// Schema of the type.
    const SCHEMA: &'static Node;
}

/// Return type with a schema: `Json<T>`, alone or in a `Result`.
#[diagnostic::on_unimplemented(
    message = "`output` needs a tool that returns `Json<T>`, not `{Self}`",
    note = "return `Json<T>` or `Result<Json<T>>`, or take `output` away"
)]
pub trait Output {
    /// Schema of the answer.
    const SCHEMA: &'static Node;
}

impl<T: Schema> Output for Json<T> {
    const SCHEMA: &'static Node = T::SCHEMA;
}

impl<T: Output, E: Into<Error>> Output for Result<T, E> {
    const SCHEMA: &'static Node = T::SCHEMA;
}

macro_rules! schemas {
    ($($type:ty: { $($key:literal: $node:expr),* },)*) => {$(
        impl Schema for $type {
            const SCHEMA: &'static Node = &Node::Object(&[$(($key, $node)),*]);
        }
    )*};
}

const INTEGER: Node = Node::Text("integer");
const STRING: Node = Node::Text("string");
const ARRAY: Node = Node::Text("array");
const OBJECT: Node = Node::Text("object");
const ZERO: Node = Node::Number(0);

// The ends of the 64-bit ranges are omitted: not every reader of JSON can represent them.
schemas! {
    bool: { "type": Node::Text("boolean") },
    u8: { "type": INTEGER, "minimum": ZERO, "maximum": Node::Raw("255") },
    u16: { "type": INTEGER, "minimum": ZERO, "maximum": Node::Raw("65535") },
    u32: { "type": INTEGER, "minimum": ZERO, "maximum": Node::Raw("4294967295") },
    u64: { "type": INTEGER, "minimum": ZERO },
    usize: { "type": INTEGER, "minimum": ZERO },
    i8: { "type": INTEGER, "minimum": Node::Raw("-128"), "maximum": Node::Raw("127") },
    i16: { "type": INTEGER, "minimum": Node::Raw("-32768"), "maximum": Node::Raw("32767") },
    i32: { "type": INTEGER, "minimum": Node::Raw("-2147483648"), "maximum": Node::Raw("2147483647") },
    i64: { "type": INTEGER },
    isize: { "type": INTEGER },
    f32: { "type": Node::Text("number") },
    f64: { "type": Node::Text("number") },
    String: { "type": STRING },
    str: { "type": STRING },
    char: { "type": STRING, "minLength": Node::Number(1), "maxLength": Node::Number(1) },
    Value: {},
    serde_json::Map<String, Value>: { "type": OBJECT },
    Encoding: { "type": STRING, "enum": Node::List(&[Node::Text("utf-8"), Node::Text("base64")]) },
}

/// Types with the schema of their content.
macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Schema + ?Sized> Schema for $type {
            const SCHEMA: &'static Node = T::SCHEMA;
        }
    )*};
}

transparent!(&T, Box<T>);

impl<T: Schema> Schema for Option<T> {
    const SCHEMA: &'static Node = T::SCHEMA;
}

impl<T: Schema> Schema for [T] {
    const SCHEMA: &'static Node = &Node::Object(&[("type", ARRAY), ("items", *T::SCHEMA)]);
}

impl<T: Schema> Schema for Vec<T> {
    const SCHEMA: &'static Node = <[T]>::SCHEMA;
}

impl<T: Schema, const N: usize> Schema for [T; N] {
    const SCHEMA: &'static Node =
        &Node::With(<[T]>::SCHEMA, &[("minItems", Node::Number(N)), ("maxItems", Node::Number(N))]);
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    const SCHEMA: &'static Node = &Node::Object(&[("type", OBJECT), ("additionalProperties", *T::SCHEMA)]);
}

impl<T: Schema, S> Schema for HashMap<String, T, S> {
    const SCHEMA: &'static Node = <BTreeMap<String, T>>::SCHEMA;
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => {$(
        impl<$($name: Schema),*> Schema for ($($name,)*) {
            const SCHEMA: &'static Node = &Node::Object(&[
                ("type", ARRAY),
                ("prefixItems", Node::List(&[$(*$name::SCHEMA),*])),
                ("minItems", Node::Number($count)),
                ("maxItems", Node::Number($count)),
            ]);
        }
    )*};
}

tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
}
