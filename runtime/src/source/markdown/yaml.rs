//! Parser of untrusted YAML, with limits on values and depth. It rejects duplicate keys and numbers beyond a double. Each
//! value keeps its position; an aliased value has the position of its anchor.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::localizer::Localizer;
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use crate::source::diagnostics::Fault;
use crate::tool::Place;

use super::node::{Data, Key, Node};

/// Maximum number of values per document, including those that aliases repeat.
const MAX_VALUES: usize = 50_000;
/// Maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 32;

/// Parses a document.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_VALUES, max_depth: MAX_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 2 * MAX_VALUES },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Fault {
        place: error.location().and_then(place),
        message: error.render_with_formatter(&UserMessageFormatter.with_localizer(&WithoutPlaces)),
    })
}

fn place(location: Location) -> Option<Place> {
    let (line, column) = (u32::try_from(location.line()).ok()?, u32::try_from(location.column()).ok()?);
    (line > 0).then_some(Place { line, column })
}

/// Localizer that leaves positions out of messages, since diagnostics carry them.
struct WithoutPlaces;

impl Localizer for WithoutPlaces {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
    fn alias_defined_at(&self, _: Location) -> String {
        String::new()
    }
    fn alias_used_at(&self, _: Location) -> String {
        String::new()
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: data, defined, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { place: place(defined), data })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: name, defined, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { place: place(defined), name })
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build)
    }
}

/// Builds a value from any event of the parser.
struct Build;

impl<'de> Visitor<'de> for Build {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can represent")
    }
    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Boolean(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Data, E> {
        Number::from_f64(value).map(Data::Number).ok_or_else(|| E::custom("the number is not finite"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Data, E> {
        Ok(Data::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Data::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn place_of(text: &str, field: &str) -> (u32, u32) {
        let mut fields = parse(text).unwrap().fields("top").unwrap();
        let place = fields.take(field).unwrap().place.unwrap();
        (place.line, place.column)
    }

    #[test]
    fn values_keep_their_kind_their_order_and_their_place() {
        let text = "---\nz: {on: yes, 1: 0x1f, t: true}\na: [1.5, ~, \"2\", -3]\n";
        let expected = r#"{"z":{"on":"yes","1":31,"t":true},"a":[1.5,null,"2",-3]}"#;
        assert_eq!(parse(text).unwrap().json().to_string(), expected);
        assert_eq!((place_of(text, "z"), place_of(text, "a")), ((2, 4), (3, 4)));
        assert_eq!(parse("---\n").unwrap().json(), json!(null));
    }

    #[test]
    fn an_error_says_what_and_where() {
        for (text, line, column, expected) in [
            ("---\na: [1\n", 2, 4, "unclosed bracket '['"),
            ("---\na: 1\nb: c: d\n", 3, 5, "mapping values are not allowed in this context"),
            ("---\na: 1\na: 2\n", 3, 1, "duplicate mapping key `a`"),
            ("---\na: 1e400\n", 2, 4, "value `1e400` is not a finite number"),
            ("---\na: *b\n", 2, 4, "reference to unknown value"),
            ("---\n~: 1\n", 2, 1, "null"),
            ("---\na: 1\n...\nb: 2\n", 4, 1, "only single YAML document expected but multiple found"),
        ] {
            let fault = parse(text).unwrap_err();
            assert_eq!(fault.place, Some(Place { line, column }), "{text:?} {fault:?}");
            assert!(fault.message.contains(expected) && !fault.message.contains("line"), "{fault:?}");
        }
    }

    #[test]
    fn bombs_are_refused_at_once() {
        let mut aliases = String::from("---\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..12 {
            aliases += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","));
        }
        let deep: String = (0..=MAX_DEPTH).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        let many = format!("---\na: [{}1]\n", "1,".repeat(MAX_VALUES));
        for text in [aliases, deep, "[".repeat(5000), many] {
            let start = Instant::now();
            let fault = parse(&text).unwrap_err();
            assert!(start.elapsed().as_secs() < 5, "{:?} {fault:?}", start.elapsed());
        }
    }
}
