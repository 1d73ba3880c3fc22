//! JSON as a tree, and its conversion into types. serde_json could convert directly, but its messages add the printing
//! of floating-point numbers to every tool, a fifth of the size of a small one. The messages here also omit details
//! that a model cannot use.

use std::fmt;
use std::vec::IntoIter;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

/// JSON value; an object keeps its order.
#[derive(Debug)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Message about a value that does not match a type.
#[derive(Debug)]
pub(crate) struct Mismatch(String);

/// Parses JSON into a type.
pub(crate) fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Mismatch> {
    let tree: Tree = serde_json::from_str(json).map_err(Mismatch::custom)?;
    T::deserialize(tree)
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl serde::de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
            Unexpected::Float(_) => "a number with a fraction",
            Unexpected::Str(_) | Unexpected::Char(_) => "a string",
            Unexpected::Unit | Unexpected::Option => "null",
            Unexpected::Seq => "a list",
            _ => "an object",
        };
        Self(format!("found {found}, expected {expected}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Unsigned(number) => Self(format!("found {number}, expected {expected}")),
            Unexpected::Signed(number) => Self(format!("found {number}, expected {expected}")),
            Unexpected::Str(text) => Self(format!("found `{text}`, expected {expected}")),
            other => Self::invalid_type(other, expected),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Grower)
    }
}

struct Grower;

impl<'de> Visitor<'de> for Grower {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Tree::Object(object))
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for Tree {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// `1.0` is an integer in JSON Schema, so it is accepted as one.
macro_rules! whole {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            self.whole().deserialize_any(visitor)
        }
    )*};
}

impl Tree {
    /// Converts a number without a fraction into an integer, in the range in which floating point represents every
    /// integer.
    fn whole(self) -> Self {
        const MAX_EXACT: f64 = 9_007_199_254_740_991.0;
        match self {
            Self::Float(number) if (0.0..=MAX_EXACT).contains(&number) && number.fract() == 0.0 => {
                Self::Unsigned(number as u64)
            }
            Self::Float(number) if (-MAX_EXACT..0.0).contains(&number) && number.fract() == 0.0 => {
                Self::Signed(number as i64)
            }
            other => other,
        }
    }
}

type Object = MapDeserializer<'static, IntoIter<(String, Tree)>, Mismatch>;

impl<'de> Deserializer<'de> for Tree {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(value) => visitor.visit_string(value),
            Self::List(items) => {
                let mut items = SeqDeserializer::new(items.into_iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Self::Object(members) => {
                let mut members = Object::new(members.into_iter());
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    /// Variant by its name alone, or as the only member of an object.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self {
            Self::Text(variant) => StringDeserializer::new(variant).deserialize_enum(name, variants, visitor),
            Self::Object(members) if members.len() == 1 => {
                let members = MapAccessDeserializer::new(Object::new(members.into_iter()));
                members.deserialize_enum(name, variants, visitor)
            }
            _ => Err(Mismatch::custom(format_args!("expected one of `{}`", variants.join("`, `")))),
        }
    }

    whole! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }
    whole! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::Value;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        Point,
        Circle(f64),
        Box { wide: u8, high: Option<u8> },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Tagged {
        Box { wide: u8 },
    }

    fn refused<T: DeserializeOwned + fmt::Debug>(json: &str) -> String {
        parse::<T>(json).expect_err("refused").to_string()
    }

    #[test]
    fn json_becomes_what_serde_json_makes_of_it() {
        for json in [r#"{"b":[1,-2,1.5,true,null,"é\n"],"a":{"x":18446744073709551615}}"#, "[]", "{}", "null"] {
            let value: Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(parse::<Value>(json).expect("parsed"), value);
        }
    }

    #[test]
    fn every_form_of_a_variant_is_read() {
        let shapes: Vec<Shape> =
            parse(r#"["point", {"circle": 1}, {"box": {"wide": 2, "high": null}}]"#).expect("shapes");
        assert_eq!(shapes, [Shape::Point, Shape::Circle(1.0), Shape::Box { wide: 2, high: None }]);
        assert_eq!(parse::<Tagged>(r#"{"kind": "box", "wide": 3}"#).expect("tagged"), Tagged::Box { wide: 3 });
        assert_eq!(refused::<Shape>("1"), "expected one of `point`, `circle`, `box`");
        assert!(refused::<Shape>("\"square\"").starts_with("unknown variant `square`"));
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_words_of_json() {
        assert_eq!(refused::<String>("1"), "found an integer, expected a string");
        assert_eq!(refused::<u8>("1.5"), "found a number with a fraction, expected u8");
        assert_eq!(parse::<(u8, i8)>("[1.0, -1e1]").expect("whole"), (1, -10));
        assert_eq!(refused::<u8>("300"), "found 300, expected u8");
        assert_eq!(refused::<bool>("null"), "found null, expected a boolean");
        assert_eq!(refused::<(u8,)>("[1, 2]"), "invalid length 2, expected 1 element in sequence");
        assert_eq!(refused::<BTreeMap<String, u8>>("[]"), "found a list, expected a map");
        assert_eq!(refused::<Value>("{"), "EOF while parsing an object at line 1 column 1");
    }
}
