//! A form from the schema of a tool's arguments, without scripts: what it shows for the values that a browser sent, and the
//! arguments that these are. Field names are positions in the schema, so that no text of a tool is among them.

mod edit;
mod fill;
mod shown;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(super) use edit::edit;
pub(super) use shown::{Problems, shown};

/// Maximum depth of a form; a deeper part is written as JSON.
const MAX_DEPTH: usize = 10;
/// Maximum fields of a form; further parts are written as JSON.
const MAX_NODES: usize = 600;
/// Maximum items of one list in a form.
pub(super) const MAX_ITEMS: usize = 100;
/// Maximum values of one choice; a longer enumeration is written as JSON.
const MAX_VALUES: usize = 200;
/// Maximum kinds among which one value chooses.
const MAX_KINDS: usize = 20;
/// Maximum references that one part of a schema follows.
const MAX_REFERENCES: usize = 16;
/// Keywords that say something about a part and do not restrict it.
const ABOUT: [&str; 3] = ["title", "description", "default"];
/// Path of the whole form.
const ROOT: &str = "f";

/// Values of the fields, by their names: `v` and a path for a value, `e` for a value that is sent even if it is empty, `n` for
/// the number of items, `k` for the name of a member, `u` for the kind that was chosen.
pub(super) type Fields = BTreeMap<String, String>;

/// Part of a form.
#[derive(Debug)]
pub(super) struct Node {
    /// Position in the form, such as `f.0.2`.
    path: String,
    /// JSON pointer of the value in the arguments.
    pointer: String,
    label: String,
    schema: Map<String, Value>,
    is_required: bool,
    /// `true` to send the value even if it is empty.
    is_sent_empty: bool,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Text(String),
    Number(String),
    Choice {
        values: Vec<Value>,
        chosen: Option<usize>,
    },
    /// Any value, as JSON.
    Json(String),
    Object {
        fields: Vec<(String, Node)>,
        /// Members with names of their own, if there may be any.
        more: Option<Vec<(String, Node)>>,
    },
    Array(Vec<Node>),
    /// Value with one of several kinds.
    Union {
        kinds: Vec<String>,
        chosen: Option<usize>,
        inside: Option<Box<Node>>,
    },
}

/// Shape of a schema part.
enum Shape<'s> {
    Text,
    Number,
    Choice(Vec<Value>),
    Json,
    Object { members: Option<Cow<'s, Value>> },
    Array(Cow<'s, Value>),
    Union(Vec<Cow<'s, Value>>),
}

/// Form of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form<'s>(pub(super) &'s Value);

/// Place of a part.
struct Place {
    path: String,
    pointer: String,
    label: String,
    is_required: bool,
    depth: usize,
}

struct Builder<'a> {
    form: Form<'a>,
    fields: &'a Fields,
    nodes: usize,
}

impl<'s> Form<'s> {
    /// Returns the form with these values.
    pub(super) fn node(self, fields: &Fields) -> Node {
        let (path, label) = (ROOT.to_owned(), String::new());
        let place = Place { path, pointer: String::new(), label, is_required: true, depth: 0 };
        Builder { form: self, fields, nodes: 0 }.node(self.0, place)
    }

    /// Number of members that a schema part names.
    fn width(self, schema: &Value) -> usize {
        self.followed(schema).get("properties").and_then(Value::as_object).map_or(0, Map::len)
    }

    /// Follows the references in a schema part.
    fn followed<'v>(self, schema: &'v Value) -> &'v Value
    where
        's: 'v,
    {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let Some(target) = self.target(schema) else { break };
            schema = target;
        }
        schema
    }

    /// Returns the schema part that the part `schema` leads to.
    fn target<'v>(self, schema: &'v Value) -> Option<&'v Value>
    where
        's: 'v,
    {
        let fields = schema.as_object()?;
        let reference = fields.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        let single = || fields.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1 && is_bare(fields));
        reference.and_then(|to| self.0.pointer(to)).or_else(|| Some(&single()?[0]))
    }

    /// Follows the references in a schema part; the description beside a reference is kept.
    fn resolved<'v>(self, schema: &'v Value) -> (Map<String, Value>, Shape<'v>)
    where
        's: 'v,
    {
        let (mut schema, mut about) = (schema, Map::new());
        for _ in 0..MAX_REFERENCES {
            let Some(fields) = schema.as_object() else { break };
            for name in ABOUT {
                if let (Some(value), false) = (fields.get(name), about.contains_key(name)) {
                    about.insert(name.to_owned(), value.clone());
                }
            }
            let Some(target) = self.target(schema) else { break };
            schema = target;
        }
        let mut fields = schema.as_object().cloned().unwrap_or_default();
        fields.extend(about);
        (fields, shape(schema))
    }
}

/// Returns the title and description of a schema part that the form does not show in parts.
fn about(schema: &Value) -> Map<String, Value> {
    let text = |name: &str| Some((name.to_owned(), schema.get(name).filter(|it| it.is_string())?.clone()));
    ["title", "description"].into_iter().filter_map(text).collect()
}

/// Returns `true` if a schema with `allOf` has nothing else that restricts a value.
fn is_bare(fields: &Map<String, Value>) -> bool {
    fields.keys().all(|name| name == "allOf" || ABOUT.contains(&name.as_str()))
}

/// Returns the shape of a schema part without references.
fn shape(schema: &Value) -> Shape<'_> {
    let Some(fields) = schema.as_object() else { return Shape::Json };
    let has = |name: &str| fields.contains_key(name);
    if let Some(value) = fields.get("const") {
        return Shape::Choice(vec![value.clone()]);
    }
    if let Some(values) = fields.get("enum").and_then(Value::as_array) {
        return if values.len() <= MAX_VALUES { Shape::Choice(values.clone()) } else { Shape::Json };
    }
    if ["allOf", "if", "not", "$ref", "patternProperties", "prefixItems", "$dynamicRef"].into_iter().any(has) {
        return Shape::Json;
    }
    let kinds = fields.get("oneOf").or_else(|| fields.get("anyOf")).and_then(Value::as_array);
    if let Some(kinds) = kinds {
        let fits = (1..=MAX_KINDS).contains(&kinds.len()) && !has("properties") && !(has("oneOf") && has("anyOf"));
        return if fits { Shape::Union(kinds.iter().map(Cow::Borrowed).collect()) } else { Shape::Json };
    }
    match fields.get("type") {
        Some(Value::String(kind)) => of_type(kind, fields),
        Some(Value::Array(kinds)) if (1..=MAX_KINDS).contains(&kinds.len()) => {
            let one = |kind: &Value| {
                let mut one = fields.clone();
                one.insert("type".to_owned(), kind.clone());
                one.retain(|name, _| !matches!(name.as_str(), "description" | "title" | "default"));
                Cow::Owned(Value::Object(one))
            };
            Shape::Union(kinds.iter().map(one).collect())
        }
        None if has("properties") => of_type("object", fields),
        None if has("items") => of_type("array", fields),
        _ => Shape::Json,
    }
}

fn of_type<'s>(kind: &str, fields: &'s Map<String, Value>) -> Shape<'s> {
    match kind {
        "string" => Shape::Text,
        "integer" | "number" => Shape::Number,
        "boolean" => Shape::Choice(vec![Value::Bool(true), Value::Bool(false)]),
        "null" => Shape::Choice(vec![Value::Null]),
        "object" => {
            let has_none = fields.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
            let members = match fields.get("additionalProperties") {
                Some(Value::Bool(false)) => None,
                Some(members @ Value::Object(_)) => Some(Cow::Borrowed(members)),
                _ => has_none.then_some(Cow::Owned(Value::Bool(true))),
            };
            Shape::Object { members }
        }
        "array" => Shape::Array(fields.get("items").map_or(Cow::Owned(Value::Bool(true)), Cow::Borrowed)),
        _ => Shape::Json,
    }
}

/// Returns the names of an object's required members.
fn required(fields: &Map<String, Value>) -> Vec<&str> {
    fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the pointer of a member.
fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl Builder<'_> {
    fn get(&self, kind: char, path: &str) -> Option<&str> {
        self.fields.get(&format!("{kind}:{path}")).map(String::as_str)
    }

    /// Returns the number of items that a list has.
    fn count(&self, path: &str) -> usize {
        self.get('n', path).and_then(|count| count.parse().ok()).unwrap_or(0).min(MAX_ITEMS)
    }

    fn node(&mut self, schema: &Value, place: Place) -> Node {
        self.nodes += 1;
        let has_room = |parts: usize| place.depth < MAX_DEPTH && self.nodes + parts <= MAX_NODES;
        let is_whole = has_room(0) && has_room(self.form.width(schema));
        let (fields, shape) = if is_whole { self.form.resolved(schema) } else { (about(schema), Shape::Json) };
        let text = || self.get('v', &place.path).unwrap_or_default().to_owned();
        let kind = match shape {
            Shape::Text => NodeKind::Text(text()),
            Shape::Number => NodeKind::Number(text()),
            Shape::Json => NodeKind::Json(text()),
            Shape::Choice(values) => {
                let only = (place.is_required && values.len() == 1).then_some(0);
                let chosen = text().parse().ok().filter(|at| *at < values.len()).or(only);
                NodeKind::Choice { values, chosen }
            }
            Shape::Object { members } => self.object(&fields, members.as_deref(), &place),
            Shape::Array(items) => {
                let one = |builder: &mut Self, at: usize| {
                    let pointer = below(&place.pointer, &at.to_string());
                    let place = place.inside(&at.to_string(), pointer, format!("Item {}", at + 1), true);
                    builder.node(&items, place)
                };
                NodeKind::Array((0..self.count(&place.path)).map(|at| one(self, at)).collect())
            }
            Shape::Union(kinds) => {
                let first = place.is_required.then_some(0);
                let chosen = match self.get('u', &place.path) {
                    Some(chosen) => chosen.parse().ok().filter(|at| *at < kinds.len()),
                    None => first,
                };
                let inside = chosen.map(|at| {
                    let inside = place.inside(&format!("u{at}"), place.pointer.clone(), String::new(), true);
                    Box::new(self.node(&kinds[at], inside))
                });
                NodeKind::Union { kinds: kinds.iter().map(|kind| self.form.name(kind)).collect(), chosen, inside }
            }
        };
        let is_sent_empty = self.get('e', &place.path).is_some();
        let Place { path, pointer, label, is_required, .. } = place;
        Node { path, pointer, label, schema: fields, is_required, is_sent_empty, kind }
    }

    fn object(&mut self, schema: &Map<String, Value>, members: Option<&Value>, place: &Place) -> NodeKind {
        let names = required(schema);
        let mut fields = Vec::new();
        for (at, (name, property)) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten().enumerate()
        {
            let is_required = names.contains(&name.as_str());
            let inside = place.inside(&at.to_string(), below(&place.pointer, name), name.clone(), is_required);
            fields.push((name.clone(), self.node(property, inside)));
        }
        let more = members.map(|member| {
            let one = |builder: &mut Self, at: usize| {
                let path = format!("m{at}");
                let name = builder.get('k', &format!("{}.{path}", place.path)).unwrap_or_default().to_owned();
                let inside = place.inside(&path, below(&place.pointer, &name), "Value".to_owned(), true);
                (name, builder.node(member, inside))
            };
            (0..self.count(&place.path)).map(|at| one(self, at)).collect()
        });
        NodeKind::Object { fields, more }
    }
}

impl Place {
    fn inside(&self, step: &str, pointer: String, label: String, is_required: bool) -> Self {
        Self { path: format!("{}.{step}", self.path), pointer, label, is_required, depth: self.depth + 1 }
    }
}

impl Node {
    /// Returns the value that the fields are, if it is sent, and adds the problems of fields that are no value.
    pub(super) fn value(&self, problems: &mut Problems) -> Option<Value> {
        let mut problem = |pointer: &str, text: String| {
            problems.insert(pointer.to_owned(), text);
        };
        match &self.kind {
            NodeKind::Text(text) if text.is_empty() => self.is_sent().then(|| Value::String(String::new())),
            NodeKind::Text(text) => Some(Value::String(text.clone())),
            NodeKind::Number(text) | NodeKind::Json(text) if text.trim().is_empty() => None,
            NodeKind::Number(text) => match serde_json::from_str(text.trim()) {
                Ok(value @ Value::Number(_)) => Some(value),
                _ => {
                    problem(&self.pointer, "this is not a number".to_owned());
                    None
                }
            },
            NodeKind::Json(text) => match serde_json::from_str(text) {
                Ok(value) => Some(value),
                Err(error) => {
                    problem(&self.pointer, format!("this is not JSON: {error}"));
                    None
                }
            },
            NodeKind::Choice { values, chosen } => Some(values[(*chosen)?].clone()),
            NodeKind::Object { fields, more } => {
                let mut object = Map::new();
                for (name, node) in fields {
                    node.value(problems).map(|value| object.insert(name.clone(), value));
                }
                for (name, node) in more.iter().flatten() {
                    let value = node.value(problems);
                    if object.contains_key(name) {
                        problems.insert(node.pointer.clone(), "another member has this name".to_owned());
                    } else {
                        value.map(|value| object.insert(name.clone(), value));
                    }
                }
                (!object.is_empty() || self.is_sent()).then_some(Value::Object(object))
            }
            NodeKind::Array(items) => {
                let values: Vec<Value> = items
                    .iter()
                    .filter_map(|item| {
                        let value = item.value(problems);
                        if value.is_none() && !problems.contains_key(&item.pointer) {
                            problems.insert(item.pointer.clone(), "this item has no value".to_owned());
                        }
                        value
                    })
                    .collect();
                (!values.is_empty() || self.is_sent()).then_some(Value::Array(values))
            }
            NodeKind::Union { inside, .. } => inside.as_ref()?.value(problems),
        }
    }

    fn is_sent(&self) -> bool {
        self.is_required || self.is_sent_empty
    }
}
