//! Types from a JSON Schema. A schema is a stranger's: reading it is bounded in depth and in the number of schemas, and
//! everything beyond, or without a counterpart in a type, is open. Formats, patterns, `not` and conditions are ignored.

use std::collections::HashMap;
use std::ptr::from_ref;

use serde_json::{Map, Value};

use crate::stub::members::{Conjunction, has_structure, is_reference, resolve};
use crate::stub::shape::{Definition, Literal, Shape, Tuple, Type};

/// Maximum number of objects and lists around a type.
const MAX_LEVEL: usize = 16;
/// Maximum number of schemas, references and alternatives around one.
const MAX_NESTED: usize = 48;
/// Maximum number of schemas that are read for one shape.
const MAX_SCHEMAS: usize = 4096;
/// Maximum characters of a text with a type of its own.
const MAX_LITERAL: usize = 200;
/// Maximum number of values in an `enum` with types of their own.
const MAX_VALUES: usize = 100;
/// Largest distance from zero at which a double holds every integer.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Reads the type of a schema.
pub(super) fn read(schema: &Value) -> Shape<'_> {
    let mut reader = Reader { root: schema, left: MAX_SCHEMAS, targets: HashMap::new(), definitions: Vec::new() };
    let root = reader.read(schema, Place::default());
    let definitions = reader.definitions.into_iter().map(|target| target.definition).collect();
    Shape { root, definitions }
}

/// Place of a schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// Number of objects and lists around the value.
    level: usize,
    /// Number of schemas around the schema.
    nested: usize,
}

impl Place {
    /// Returns the place of a part of the value.
    pub(super) fn below(self) -> Self {
        Self { level: self.level + 1, nested: self.nested + 1 }
    }

    fn is_too_deep(self) -> bool {
        self.level > MAX_LEVEL || self.nested > MAX_NESTED
    }

    /// Returns the place of another schema for the same value.
    fn beside(self) -> Self {
        Self { nested: self.nested + 1, ..self }
    }
}

/// Target of a reference.
struct Target<'a> {
    definition: Definition<'a>,
    /// Level of the value whose type is being read.
    reading: Option<usize>,
}

/// State while a schema is read.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Value,
    /// Number of schemas that may still be read.
    pub(super) left: usize,
    targets: HashMap<*const Value, usize>,
    definitions: Vec<Target<'a>>,
}

impl<'a> Reader<'a> {
    /// Returns the type of a schema.
    pub(super) fn read(&mut self, schema: &'a Value, place: Place) -> Type<'a> {
        let Some(left) = self.left.checked_sub(1) else { return Type::Any };
        self.left = left;
        match schema {
            Value::Bool(false) => Type::Never,
            Value::Object(fields) if !place.is_too_deep() => self.fields(fields, place),
            _ => Type::Any,
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, place: Place) -> Type<'a> {
        if is_reference(fields) {
            return self.reference(fields["$ref"].as_str().unwrap_or_default(), place);
        }
        // A single `allOf` adds a description to a reference.
        let wrapped = fields.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1);
        if let Some([one]) = wrapped.map(Vec::as_slice)
            && !has_structure(fields, &["allOf"])
        {
            return self.read(one, place.beside());
        }
        self.conjunction(&Conjunction::of(self.root, fields), place)
    }

    /// Returns the type of a reference: its name, unless the type is short.
    fn reference(&mut self, reference: &'a str, place: Place) -> Type<'a> {
        let Some(target) = resolve(self.root, reference) else { return Type::Any };
        if let Some(&index) = self.targets.get(&from_ref(target)) {
            let known = &self.definitions[index];
            return match known.reading {
                // A type that is an alternative of itself.
                Some(level) if level == place.level => Type::Any,
                None if known.definition.value.is_atom() => known.definition.value.clone(),
                _ => Type::Named(index),
            };
        }
        let index = self.definitions.len();
        self.targets.insert(from_ref(target), index);
        let name = reference.rsplit('/').next().unwrap_or_default();
        let definition = Definition { name, value: Type::Any };
        self.definitions.push(Target { definition, reading: Some(place.level) });
        let value = self.read(target, place.beside());
        let is_atom = value.is_atom();
        let known = &mut self.definitions[index];
        known.reading = None;
        known.definition.value = value;
        if is_atom { known.definition.value.clone() } else { Type::Named(index) }
    }

    /// Returns the type of a value under all of these schemas together, unless it is too deep.
    pub(super) fn bounded(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        if place.is_too_deep() { Type::Any } else { self.conjunction(all, place) }
    }

    fn conjunction(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        let type_ = self.not_null(all, place);
        let is_nullable = all.values("nullable").any(|value| *value == Value::Bool(true));
        if is_nullable { Type::union([type_, Type::Null]) } else { type_ }
    }

    fn not_null(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        if let Some(value) = all.values("const").next() {
            return literal(value);
        }
        if let Some(values) = all.values("enum").find_map(Value::as_array) {
            let types = values.iter().map(literal);
            let is_long = values.len() > MAX_VALUES;
            return Type::union(types.map(|one| if is_long { widened(one) } else { one }));
        }
        let keywords = ["anyOf", "oneOf"].into_iter().flat_map(|keyword| all.values(keyword));
        match keywords.filter_map(Value::as_array).find(|branches| !branches.is_empty()) {
            Some(branches) => self.alternatives(all, branches, place),
            None => self.plain(all, place),
        }
    }

    /// Returns the type of a value under the schemas and one of the branches.
    fn alternatives(&mut self, all: &Conjunction<'a>, branches: &'a [Value], place: Place) -> Type<'a> {
        if !all.has_members() {
            let mut types = Vec::new();
            for branch in branches {
                types.push(self.read(branch, place.beside()));
            }
            return match Type::union(types) {
                Type::Any => self.plain(all, place),
                union => union,
            };
        }
        let fields: Vec<_> = branches.iter().filter_map(Value::as_object).collect();
        let joined: Vec<_> = fields.into_iter().map(|branch| all.and(self.root, branch)).collect();
        // Branches often say only which fields are required together.
        if !joined.iter().any(|one| one.count("properties") > all.count("properties")) {
            return self.plain(all, place);
        }
        let types: Vec<_> = joined.iter().map_while(|one| (self.left > 0).then(|| self.plain(one, place))).collect();
        if types.len() < joined.len() { Type::Any } else { Type::union(types) }
    }

    /// Returns the type that the schemas state without their alternatives.
    fn plain(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        let mut kinds: Option<Vec<&str>> = None;
        for value in all.values("type") {
            let stated: Vec<&str> = match value {
                Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            let is_stated = |kind: &&str| stated.contains(kind) || *kind == "integer" && stated.contains(&"number");
            kinds = Some(match kinds {
                None => stated,
                Some(known) if known.contains(&"number") && stated.contains(&"integer") => vec!["integer"],
                Some(known) => known.into_iter().filter(is_stated).collect(),
            });
        }
        let kinds = kinds.unwrap_or_else(|| all.implied());
        if kinds.is_empty() {
            return Type::Any;
        }
        let types: Vec<_> = kinds.into_iter().take(8).map(|kind| self.kind(kind, all, place)).collect();
        Type::union(types)
    }

    fn kind(&mut self, kind: &str, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        match kind {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::Text,
            "array" => self.list(all, place),
            "object" => self.object(all, place),
            _ => Type::Any,
        }
    }

    fn list(&mut self, all: &Conjunction<'a>, place: Place) -> Type<'a> {
        let items = all.values("items").next();
        let places = all.values("prefixItems").chain(items).find_map(Value::as_array);
        let Some(places) = places.filter(|places| !places.is_empty()) else {
            let item = items.map_or(Type::Any, |item| self.read(item, place.below()));
            return Type::List(Box::new(item));
        };
        let rest = if items.is_some_and(Value::is_array) { all.values("additionalItems").next() } else { items };
        let mut types = Vec::new();
        for item in places {
            if self.left == 0 {
                return Type::List(Box::new(Type::Any));
            }
            types.push(self.read(item, place.below()));
        }
        let minimum = all.values("minItems").find_map(Value::as_u64).map_or(usize::MAX, |n| n as usize);
        let required = minimum.min(types.len());
        let rest = rest.map(|rest| self.read(rest, place.below())).filter(|rest| *rest != Type::Never);
        Type::Tuple(Tuple { items: types, required, rest: rest.map(Box::new) })
    }
}

/// Returns the type of one value.
fn literal(value: &Value) -> Type<'_> {
    match value {
        Value::Null => Type::Null,
        Value::Bool(value) => Type::Literal(Literal::Boolean(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if integer.unsigned_abs() <= MAX_SAFE_INTEGER => Type::Literal(Literal::Integer(integer)),
            Some(_) => Type::Integer,
            None => Type::Number,
        },
        Value::String(text) if text.chars().nth(MAX_LITERAL).is_none() => Type::Literal(Literal::Text(text)),
        Value::String(_) => Type::Text,
        Value::Array(_) => Type::List(Box::new(Type::Any)),
        Value::Object(_) => Type::Map(Box::new(Type::Any)),
    }
}

/// Returns the type of all values of the kind of a literal.
fn widened(literal: Type<'_>) -> Type<'_> {
    match literal {
        Type::Literal(Literal::Text(_)) => Type::Text,
        Type::Literal(Literal::Integer(_)) => Type::Integer,
        Type::Literal(Literal::Boolean(_)) => Type::Boolean,
        other => other,
    }
}
