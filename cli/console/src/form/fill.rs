//! Field values of a form: from the defaults in a schema, and from given arguments.

use serde_json::{Map, Value};
use toolcrib_base::render::legible;

use super::{Fields, Form, MAX_DEPTH, MAX_ITEMS, Problems, ROOT, Shape, required};

/// Maximum parts that are tried for one value, each with the members that it names: each of several kinds may have several
/// kinds in it.
const MAX_TRIED: usize = 20_000;
/// Maximum items that a list begins with.
const MAX_FIRST_ITEMS: u64 = 5;

struct Filler<'s> {
    form: Form<'s>,
    tried: usize,
}

/// Place of a part.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    is_required: bool,
    depth: usize,
}

impl<'s> Form<'s> {
    /// Returns the initial values of a form: the schema defaults.
    pub(crate) fn start(self) -> Fields {
        let mut fields = Fields::new();
        let place = Place { path: ROOT, is_required: true, depth: 0 };
        Filler { form: self, tried: 0 }.start(self.0, place, &mut fields);
        fields
    }

    /// Returns the values that are these arguments; `None` if the form has no field for a part of them.
    pub(crate) fn fill(self, arguments: &Value) -> Option<Fields> {
        let mut fields = Fields::new();
        let place = Place { path: ROOT, is_required: true, depth: 0 };
        let is_filled = Filler { form: self, tried: 0 }.fill(self.0, arguments, place, &mut fields);
        let mut problems = Problems::new();
        let back = is_filled.then(|| self.node(&fields).value(&mut problems)).flatten();
        (problems.is_empty() && back.as_ref() == Some(arguments)).then_some(fields)
    }

    /// Names a kind of a union.
    pub(super) fn name(self, schema: &Value) -> String {
        let (fields, _) = self.resolved(schema);
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let value = fields.get("const").map(Value::to_string);
        let named = text("title").or(value).or_else(|| text("type"));
        let listed = || fields.get("enum").map(|values| format!("one of {values}"));
        named.or_else(listed).unwrap_or_else(|| "a value".to_owned())
    }
}

impl Filler<'_> {
    fn start(&mut self, schema: &Value, place: Place<'_>, fields: &mut Fields) {
        self.tried += 1 + self.form.width(schema);
        if place.depth >= MAX_DEPTH || self.tried > MAX_TRIED {
            return;
        }
        let (about, shape) = self.form.resolved(schema);
        if let Some(default) = about.get("default").filter(|default| is_legible(default)) {
            let mut filled = Fields::new();
            if self.fill(schema, default, place, &mut filled) {
                fields.append(&mut filled);
                return;
            }
        }
        let path = place.path;
        match shape {
            Shape::Object { .. } if place.is_required => {
                let names = required(&about);
                let properties = about.get("properties").and_then(Value::as_object).into_iter().flatten();
                for (at, (name, property)) in properties.enumerate() {
                    let path = format!("{path}.{at}");
                    let is_required = names.contains(&name.as_str());
                    self.start(property, Place { path: &path, is_required, depth: place.depth + 1 }, fields);
                }
            }
            Shape::Array(items) if place.is_required => {
                let count = about.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MAX_FIRST_ITEMS);
                fields.insert(format!("n:{path}"), count.to_string());
                for at in 0..count {
                    let path = format!("{path}.{at}");
                    self.start(&items, Place { path: &path, is_required: true, depth: place.depth + 1 }, fields);
                }
            }
            Shape::Union(kinds) if place.is_required => {
                let path = format!("{path}.u0");
                self.start(&kinds[0], Place { path: &path, is_required: true, depth: place.depth + 1 }, fields);
            }
            _ => {}
        }
    }

    /// Adds the values of a part; returns `false` if its fields cannot have them.
    fn fill(&mut self, schema: &Value, value: &Value, place: Place<'_>, fields: &mut Fields) -> bool {
        self.tried += 1 + self.form.width(schema);
        if self.tried > MAX_TRIED {
            return false;
        }
        let path = place.path;
        let (about, shape) = self.form.resolved(schema);
        let shape = if place.depth >= MAX_DEPTH { Shape::Json } else { shape };
        let mut set = |kind: char, text: String| {
            fields.insert(format!("{kind}:{path}"), text);
            true
        };
        let is_empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if is_empty && !place.is_required && !matches!(shape, Shape::Json | Shape::Choice(_) | Shape::Union(_)) {
            set('e', "1".to_owned());
        }
        match (shape, value) {
            // A browser sends every line break as two characters; one of them is taken away.
            (Shape::Text, Value::String(text)) => !text.contains('\r') && set('v', text.clone()),
            (Shape::Number, Value::Number(number)) => set('v', number.to_string()),
            (Shape::Json, value) => set('v', serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())),
            (Shape::Choice(values), value) => {
                let found = values.iter().position(|one| one == value);
                found.is_some_and(|at| set('v', at.to_string()))
            }
            (Shape::Object { members }, Value::Object(object)) => {
                self.fill_object(&about, members.as_deref(), object, place, fields)
            }
            (Shape::Array(items), Value::Array(values)) => {
                set('n', values.len().to_string());
                values.len() <= MAX_ITEMS
                    && values.iter().enumerate().all(|(at, value)| {
                        let path = format!("{path}.{at}");
                        self.fill(
                            &items,
                            value,
                            Place { path: &path, is_required: true, depth: place.depth + 1 },
                            fields,
                        )
                    })
            }
            (Shape::Union(kinds), value) => {
                let found = kinds.iter().enumerate().find_map(|(at, kind)| {
                    let (path, mut filled) = (format!("{path}.u{at}"), Fields::new());
                    let inside = Place { path: &path, is_required: true, depth: place.depth + 1 };
                    self.fill(kind, value, inside, &mut filled).then_some((at, filled))
                });
                let Some((at, mut filled)) = found else { return false };
                fields.insert(format!("u:{path}"), at.to_string());
                fields.append(&mut filled);
                true
            }
            _ => false,
        }
    }

    fn fill_object(
        &mut self,
        schema: &Map<String, Value>,
        members: Option<&Value>,
        object: &Map<String, Value>,
        Place { path, depth, .. }: Place<'_>,
        fields: &mut Fields,
    ) -> bool {
        let names = required(schema);
        if !names.iter().all(|name| object.contains_key(*name)) {
            return false;
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for (at, (name, property)) in properties.iter().enumerate() {
            let (path, is_required) = (format!("{path}.{at}"), names.contains(&name.as_str()));
            let place = Place { path: &path, is_required, depth: depth + 1 };
            if object.get(name).is_some_and(|value| !self.fill(property, value, place, fields)) {
                return false;
            }
        }
        let others: Vec<_> = object.iter().filter(|(name, _)| !properties.contains_key(*name)).collect();
        let Some(member) = members else { return others.is_empty() };
        fields.insert(format!("n:{path}"), others.len().to_string());
        others.len() <= MAX_ITEMS
            && others.into_iter().enumerate().all(|(at, (name, value))| {
                let path = format!("{path}.m{at}");
                fields.insert(format!("k:{path}"), name.clone());
                self.fill(member, value, Place { path: &path, is_required: true, depth: depth + 1 }, fields)
            })
    }
}

/// Returns `true` for a default without characters that a person does not see as they are.
fn is_legible(default: &Value) -> bool {
    let text = default.to_string();
    legible(&text) == text
        && !text.contains("\\u")
        && match default {
            Value::String(text) => legible(text) == text.as_str(),
            _ => true,
        }
}
