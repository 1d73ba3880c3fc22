//! Strict parsing of untrusted JSON: bounded depth, no duplicate keys in an object, no number beyond a double's range,
//! no lone surrogates, no trailing data.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum characters of a key in a message.
const MAX_KEY_LEN: usize = 80;

/// Limits of a document. The parser itself refuses more than 127 levels.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum nesting depth of arrays and objects.
    pub depth: usize,
    /// Maximum number of values, counting arrays, objects and their elements.
    pub values: usize,
}

/// Limits of the parser alone.
const UNLIMITED: Limits = Limits { depth: usize::MAX, values: usize::MAX };

/// Reason for the refusal of a document that is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Arrays and objects are nested deeper than this.
    TooDeep(usize),
    /// The document has more values than this.
    TooManyValues(usize),
    /// An object has two keys that count as equal; the first characters of the second.
    DuplicateKey(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep(max) => write!(f, "it is nested deeper than {max} levels"),
            Self::TooManyValues(max) => write!(f, "it has more than {max} values"),
            Self::DuplicateKey(key) => write!(f, "key {key:?} occurs twice in one object"),
        }
    }
}

/// Parses a text into a value.
///
/// # Errors
///
/// The error of the parser if the text is not JSON or violates a rule of this module.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<StrictValue>(text).map(|strict| strict.0)
}

/// Parses a document of at most these limits into a value.
///
/// # Errors
///
/// The error of the parser if the text is not JSON, exceeds a limit or violates a rule of this module.
pub fn parse_within(bytes: &[u8], limits: Limits) -> serde_json::Result<Value> {
    read::<Value>(&mut serde_json::Deserializer::from_slice(bytes), limits).1
}

/// Checks a text by the same rules except that for duplicate keys, without building a value.
///
/// # Errors
///
/// The error of the parser if the text is not JSON or violates a rule of this module.
pub fn check_line(text: &str) -> serde_json::Result<()> {
    read::<Syntax>(&mut serde_json::Deserializer::from_str(text), UNLIMITED).1.map(drop)
}

/// Checks a document without building a value. Keys that differ in ASCII case alone count as equal.
///
/// # Errors
///
/// The error of the parser, and the fault if the document exceeds a limit or violates a rule of this module.
pub fn check_within(bytes: &[u8], limits: Limits) -> Result<(), (Option<Fault>, serde_json::Error)> {
    let (fault, checked) = read::<Keys>(&mut serde_json::Deserializer::from_slice(bytes), limits);
    checked.map(drop).map_err(|error| (fault, error))
}

/// Value that deserializes by this module's rules, alone or as a part of another type.
#[derive(Debug)]
pub struct StrictValue(Value);

impl StrictValue {
    /// Returns the value.
    pub fn value(self) -> Value {
        self.0
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let state = State::new(UNLIMITED);
        Node::<Value> { state: &state, depth: 0, tree: PhantomData }.deserialize(deserializer).map(StrictValue)
    }
}

/// Returns the type of a value with an article, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads one document and nothing after it.
fn read<'de, T: Tree>(
    deserializer: &mut serde_json::Deserializer<impl serde_json::de::Read<'de>>,
    limits: Limits,
) -> (Option<Fault>, serde_json::Result<T>) {
    let state = State::new(limits);
    let node = Node::<T> { state: &state, depth: 0, tree: PhantomData };
    let read = node.deserialize(&mut *deserializer).and_then(|tree| deserializer.end().map(|()| tree));
    (state.fault.into_inner(), read)
}

/// Result of parsing: a value, or less where a value is only checked.
trait Tree: Sized {
    /// Elements of an array.
    type List: Default;
    /// Members of an object.
    type Members: Default;
    /// Key of a member until its value is read.
    type Key;

    fn scalar(scalar: Scalar<'_>) -> Self;
    fn push(list: &mut Self::List, element: Self);
    fn list(list: Self::List) -> Self;
    /// Returns the key of a new member; `None` if the object has an equal one.
    fn key(members: &mut Self::Members, key: &str) -> Option<Self::Key>;
    fn insert(members: &mut Self::Members, key: Self::Key, value: Self);
    fn object(members: Self::Members) -> Self;
}

/// Value without parts.
enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Option<Number>),
    Text(&'a str),
}

impl Tree for Value {
    type List = Vec<Value>;
    type Members = Map<String, Value>;
    type Key = String;

    fn scalar(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Number(number) => number.map_or(Self::Null, Self::Number),
            Scalar::Text(text) => Self::String(text.to_owned()),
        }
    }
    fn push(list: &mut Vec<Value>, element: Self) {
        list.push(element);
    }
    fn list(list: Vec<Value>) -> Self {
        Self::Array(list)
    }
    fn key(members: &mut Map<String, Value>, key: &str) -> Option<String> {
        (!members.contains_key(key)).then(|| key.to_owned())
    }
    fn insert(members: &mut Map<String, Value>, key: String, value: Self) {
        members.insert(key, value);
    }
    fn object(members: Map<String, Value>) -> Self {
        Self::Object(members)
    }
}

/// Nothing of a value: its syntax is checked.
struct Syntax;

impl Tree for Syntax {
    type List = ();
    type Members = ();
    type Key = ();

    fn scalar(_: Scalar<'_>) -> Self {
        Self
    }
    fn push((): &mut (), _: Self) {}
    fn list((): ()) -> Self {
        Self
    }
    fn key((): &mut (), _: &str) -> Option<()> {
        Some(())
    }
    fn insert((): &mut (), (): (), _: Self) {}
    fn object((): ()) -> Self {
        Self
    }
}

/// Keys of each object, in lowercase: its syntax is checked, and that they differ.
struct Keys;

impl Tree for Keys {
    type List = ();
    type Members = HashSet<String>;
    type Key = ();

    fn scalar(_: Scalar<'_>) -> Self {
        Self
    }
    fn push((): &mut (), _: Self) {}
    fn list((): ()) -> Self {
        Self
    }
    fn key(members: &mut HashSet<String>, key: &str) -> Option<()> {
        members.insert(key.to_ascii_lowercase()).then_some(())
    }
    fn insert(_: &mut HashSet<String>, (): (), _: Self) {}
    fn object(_: HashSet<String>) -> Self {
        Self
    }
}

/// State of one document's parsing.
struct State {
    limits: Limits,
    values: Cell<usize>,
    fault: RefCell<Option<Fault>>,
}

impl State {
    fn new(limits: Limits) -> Self {
        Self { limits, values: Cell::new(0), fault: RefCell::new(None) }
    }

    /// Records the fault that ends the parsing.
    fn refuse<E: serde::de::Error>(&self, fault: Fault) -> E {
        let error = E::custom(&fault);
        *self.fault.borrow_mut() = Some(fault);
        error
    }

    /// Counts a value.
    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        let values = self.values.get() + 1;
        self.values.set(values);
        match values > self.limits.values {
            true => Err(self.refuse(Fault::TooManyValues(self.limits.values))),
            false => Ok(()),
        }
    }
}

/// Parser of one value.
struct Node<'a, T> {
    state: &'a State,
    depth: usize,
    tree: PhantomData<T>,
}

impl<'a, T> Node<'a, T> {
    /// Returns the parser for the elements of an array or object.
    fn nested<E: serde::de::Error>(&self) -> Result<impl Fn() -> Node<'a, T> + use<'a, T, E>, E> {
        let (state, depth) = (self.state, self.depth + 1);
        match depth > state.limits.depth {
            true => Err(state.refuse(Fault::TooDeep(state.limits.depth))),
            false => Ok(move || Node { state, depth, tree: PhantomData }),
        }
    }
}

impl<'de, T: Tree> DeserializeSeed<'de> for Node<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        self.state.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Tree> Visitor<'de> for Node<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::scalar(Scalar::Null))
    }
    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::scalar(Scalar::Bool(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::scalar(Scalar::Number(Some(value.into()))))
    }
    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::scalar(Scalar::Number(Some(value.into()))))
    }
    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::scalar(Scalar::Number(Number::from_f64(value))))
    }
    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::scalar(Scalar::Text(value)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<T, A::Error> {
        let nested = self.nested()?;
        let mut list = T::List::default();
        while let Some(element) = elements.next_element_seed(nested())? {
            T::push(&mut list, element);
        }
        Ok(T::list(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<T, A::Error> {
        let nested = self.nested()?;
        let mut members = T::Members::default();
        while let Some(key) = entries.next_key_seed(KeyOf::<T> { state: self.state, members: &mut members })? {
            let value = entries.next_value_seed(nested())?;
            T::insert(&mut members, key, value);
        }
        Ok(T::object(members))
    }
}

/// Parser of a key, which is borrowed where it has no escapes.
struct KeyOf<'a, T: Tree> {
    state: &'a State,
    members: &'a mut T::Members,
}

impl<'de, T: Tree> DeserializeSeed<'de> for KeyOf<'_, T> {
    type Value = T::Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: Tree> Visitor<'_> for KeyOf<'_, T> {
    type Value = T::Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<T::Key, E> {
        let cut = || key.chars().take(MAX_KEY_LEN).collect();
        T::key(self.members, key).ok_or_else(|| self.state.refuse(Fault::DuplicateKey(cut())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dark_corners_have_one_behaviour() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for text in ["NaN", "1e999", r#""\ud800""#, "1 2", "", "nul", &deep(128), &deep(100_000)] {
            assert!(parse(text).is_err(), "{}", &text[..text.len().min(20)]);
            assert!(check_line(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
        for text in ["null", "-0.5e-3", r#""\ud83d\ude00""#, r#"{"a":[1,{"b":"c"}]}"#, &deep(127)] {
            assert!(parse(text).is_ok() && check_line(text).is_ok(), "{}", &text[..text.len().min(20)]);
        }
    }

    #[test]
    fn a_key_twice_is_refused_in_arguments() {
        assert!(parse(r#"{"path":"a","path":"../b"}"#).unwrap_err().to_string().contains("\"path\" occurs twice"));
    }

    #[test]
    fn a_limit_is_kept_and_one_more_is_refused() {
        let limits = Limits { depth: 2, values: 4 };
        for text in ["[[1]]", "[1,2,3]", r#"{"a":[1,2]}"#] {
            assert!(parse_within(text.as_bytes(), limits).is_ok(), "{text}");
            assert_eq!(check_within(text.as_bytes(), limits).ok(), Some(()), "{text}");
        }
        for (text, fault) in [
            ("[[[1]]]", Fault::TooDeep(2)),
            (r#"{"a":{"b":{}}}"#, Fault::TooDeep(2)),
            ("[1,2,3,4]", Fault::TooManyValues(4)),
        ] {
            let error = parse_within(text.as_bytes(), limits).unwrap_err();
            assert!(error.to_string().starts_with(&fault.to_string()), "{error}");
            assert_eq!(check_within(text.as_bytes(), limits).unwrap_err().0, Some(fault), "{text}");
        }
        assert!(check_within(b"[1", limits).unwrap_err().0.is_none(), "it is no JSON");
    }

    #[test]
    fn keys_that_count_as_equal_are_refused_by_the_rule_of_each_reader() {
        let limits = Limits { depth: 8, values: 100 };
        let twice = r#"{"a":[{"size":1,"Size":2}]}"#;
        assert!(parse_within(twice.as_bytes(), limits).is_ok() && check_line(twice).is_ok());
        let fault = Some(Fault::DuplicateKey("Size".into()));
        assert_eq!(check_within(twice.as_bytes(), limits).unwrap_err().0, fault);
        let escaped = r#"{"a":1,"\u0061":2}"#;
        assert!(parse_within(escaped.as_bytes(), limits).is_err() && check_line(escaped).is_ok());
        let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "x".repeat(1000));
        assert!(parse(&long).unwrap_err().to_string().len() < 200);
    }
}
