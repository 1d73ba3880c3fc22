//! Conversion of a schema to a JSON Schema subset that constrains what a model can write. A part that the subset cannot
//! state is rewritten with a note, or is left out with the optional argument that contains it.

mod parts;

use serde_json::{Map, Value, json};

use super::merge::{all_of, object_root};
use super::notes::{Notes, below};
use super::reference::resolve;
use super::{Unsupported, limits, reference};

/// Maximum number of schemas in a converted schema.
const MAX_SCHEMAS: usize = 6_000;
/// Keywords without an effect on values or on a model.
const SILENT: [&str; 9] =
    ["$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary", "$defs", "definitions", "type"];
/// Keywords that describe a value for a model.
const DESCRIPTIONS: [&str; 2] = ["title", "description"];
/// Types of values that have no parts.
const SCALARS: [&str; 4] = ["string", "number", "boolean", "null"];

/// Subset of JSON Schema.
pub(super) struct Subset {
    /// Keywords that stay as they are.
    pub(super) keywords: &'static [&'static str],
    /// Values of `format` that stay; `None` for all.
    pub(super) formats: Option<&'static [&'static str]>,
    /// Returns `true` for values that may be in an `enum`.
    pub(super) is_enum_value: fn(&Value) -> bool,
    /// `true` if the subset has `const`.
    pub(super) has_const: bool,
    /// Maximum value of `minItems`.
    pub(super) max_min_items: u64,
    /// `true` if objects must not have members without a name in the schema.
    pub(super) closes_objects: bool,
    /// `true` if every member of an object must be required.
    pub(super) requires_all: bool,
    /// `true` if a schema can contain itself.
    pub(super) is_recursive: bool,
    /// `true` if arrays can have a schema for each place.
    pub(super) has_tuples: bool,
    /// Returns `true` for names that an argument may have.
    pub(super) is_property_name: fn(&str) -> bool,
}

/// Converts the schema of arguments.
///
/// # Errors
///
/// [`Unsupported`] if the subset cannot state a required part of the schema.
pub(super) fn convert(schema: &Value, subset: &Subset, notes: &mut Notes) -> Result<Value, Unsupported> {
    limits::check_size(schema)?;
    reference::check(schema)?;
    let root = object_root(schema, notes)?;
    let is_open = root.get("additionalProperties") != Some(&Value::Bool(false));
    if subset.closes_objects && is_open {
        notes.add("", "objects are closed: a model can send only the members that the schema names");
    }
    let mut conversion = Conversion {
        root: schema,
        subset,
        notes,
        count: 0,
        open: Vec::new(),
        references: Vec::new(),
        failed: Vec::new(),
        defs: Map::new(),
    };
    let converted = conversion.object(root, "", 0);
    if conversion.count > MAX_SCHEMAS {
        let reason = format!("its schema has more than {MAX_SCHEMAS} parts once its references are followed");
        return Err(Unsupported::new(reason));
    }
    let mut fields = converted.map_err(Unsupported::new)?;
    let defs = referenced_defs(&fields, &conversion.defs)?;
    if !defs.is_empty() {
        fields.insert("$defs".to_owned(), Value::Object(defs));
    }
    Ok(Value::Object(fields))
}

/// Prefix of a reference to a definition.
const DEFS: &str = "#/$defs/";

/// Returns the definitions that a converted schema references, directly or through others.
///
/// # Errors
///
/// [`Unsupported`] if one of them could not be stated.
fn referenced_defs(fields: &Map<String, Value>, defs: &Map<String, Value>) -> Result<Map<String, Value>, Unsupported> {
    let mut found = Map::new();
    let mut open: Vec<&Value> = fields.values().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let reference = fields.get("$ref").and_then(Value::as_str);
                if let Some(name) =
                    reference.and_then(|to| to.strip_prefix(DEFS)).filter(|name| !found.contains_key(*name))
                {
                    let schema = defs.get(name);
                    let schema =
                        schema.ok_or_else(|| Unsupported::new("a schema that contains itself cannot be stated"))?;
                    found.insert(name.to_owned(), schema.clone());
                    open.push(schema);
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(found)
}

struct Conversion<'a> {
    root: &'a Value,
    subset: &'a Subset,
    notes: &'a mut Notes,
    /// Number of schemas so far.
    count: usize,
    /// References that are being followed.
    open: Vec<String>,
    /// References with a definition, for a subset with recursion.
    references: Vec<String>,
    /// References with a definition that cannot be stated.
    failed: Vec<String>,
    defs: Map<String, Value>,
}

/// Schema, or the reason why the subset cannot state it.
type Converted<T> = Result<T, String>;

impl Conversion<'_> {
    /// Converts a subschema.
    fn schema(&mut self, schema: &Value, place: &str, depth: usize) -> Converted<Value> {
        self.count += 1;
        if depth > limits::MAX_DEPTH || self.count > MAX_SCHEMAS {
            return Err(format!("`#{place}` is nested too deep, or is one part too many"));
        }
        match schema {
            Value::Bool(true) => Ok(self.any_value(place)),
            Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.referenced(fields, reference, place, depth),
                None => self.fields(fields.clone(), place, depth),
            },
            _ => Err(format!("`#{place}` accepts no value")),
        }
    }

    /// Converts a subschema with a reference.
    fn referenced(&mut self, fields: &Map<String, Value>, to: &str, place: &str, depth: usize) -> Converted<Value> {
        let target = resolve(self.root, to).ok_or_else(|| format!("`$ref` {to:?} has no target"))?.clone();
        let mut own = fields.clone();
        own.shift_remove("$ref");
        if self.subset.is_recursive && own.keys().all(|keyword| keyword == "description" || keyword == "title") {
            if !own.is_empty() {
                self.notes.add(place, "its description is left out: a reference allows no other keyword");
            }
            if self.failed.iter().any(|failed| failed == to) {
                return Err(format!("`$ref` {to:?} cannot be stated"));
            }
            let index = self.references.iter().position(|known| known == to);
            let name = format!("d{}", index.unwrap_or(self.references.len()));
            if index.is_none() {
                self.references.push(to.to_owned());
                match self.schema(&target, place, depth + 1) {
                    Ok(converted) => _ = self.defs.insert(name.clone(), converted),
                    Err(reason) => {
                        self.failed.push(to.to_owned());
                        return Err(reason);
                    }
                }
            }
            return Ok(json!({ "$ref": format!("{DEFS}{name}") }));
        }
        if self.open.iter().any(|open| open == to) {
            return Err(format!("`#{place}` contains itself"));
        }
        self.open.push(to.to_owned());
        let merged = match target {
            Value::Object(target) => Value::Object(all_of(own, target, place, self.notes)),
            Value::Bool(true) => Value::Object(own),
            other => other,
        };
        let converted = self.schema(&merged, place, depth + 1);
        self.open.pop();
        converted
    }

    /// Returns a part of `allOf` with the keywords from the schema that it references.
    fn followed(&mut self, mut part: Map<String, Value>, place: &str) -> Converted<Map<String, Value>> {
        for _ in 0..limits::MAX_DEPTH {
            let Some(reference) = part.shift_remove("$ref") else { return Ok(part) };
            let target = reference.as_str().and_then(|to| resolve(self.root, to));
            match target.ok_or_else(|| format!("`$ref` {reference} has no target"))? {
                Value::Object(target) => part = all_of(part, target.clone(), place, self.notes),
                Value::Bool(true) => {}
                _ => return Err(format!("`#{place}` accepts no value")),
            }
        }
        Err(format!("`#{place}` contains itself"))
    }

    /// Converts a subschema without a reference: composition first, then its type.
    fn fields(&mut self, mut fields: Map<String, Value>, place: &str, depth: usize) -> Converted<Value> {
        if let Some(Value::Array(parts)) = fields.shift_remove("allOf") {
            for part in parts {
                match part {
                    Value::Bool(true) => {}
                    Value::Object(part) => {
                        let part = self.followed(part, place)?;
                        fields = all_of(fields, part, place, self.notes);
                    }
                    _ => return Err(format!("`#{place}` accepts no value")),
                }
            }
            return self.schema(&Value::Object(fields), place, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = fields.shift_remove(keyword) {
                if keyword == "oneOf" {
                    self.notes.add(&below(place, keyword), "becomes `anyOf`");
                }
                return self.alternatives(fields, alternatives, &below(place, keyword), depth);
            }
        }
        let kinds = kinds(&fields);
        if kinds.is_empty() {
            let mut any = self.any_value(place);
            if let Value::Object(any) = &mut any {
                self.keep(fields, any, place);
            }
            return Ok(any);
        }
        let others: Vec<&String> = kinds.iter().filter(|kind| *kind != "null").collect();
        if others.len() > 1 && others.iter().any(|kind| ["object", "array"].contains(&kind.as_str())) {
            let is_description = |keyword: &String| DESCRIPTIONS.contains(&keyword.as_str());
            let one = |kind: &String| {
                let mut one = fields.clone();
                one.retain(|keyword, _| !is_description(keyword));
                one.insert("type".to_owned(), json!(kind));
                Value::Object(one)
            };
            let each = kinds.iter().map(one).collect();
            fields.retain(|keyword, _| is_description(keyword));
            return self.alternatives(fields, each, place, depth);
        }
        match others.first().map(|kind| kind.as_str()) {
            Some("object") => self.object(fields, place, depth).map(Value::Object),
            Some("array") => self.array(fields, place, depth).map(Value::Object),
            _ => Ok(Value::Object(self.scalar(fields, &kinds, place))),
        }
    }

    /// Converts alternatives, each together with the keywords beside them.
    fn alternatives(
        &mut self,
        mut base: Map<String, Value>,
        alternatives: Vec<Value>,
        place: &str,
        depth: usize,
    ) -> Converted<Value> {
        let mut described = Map::new();
        for keyword in DESCRIPTIONS {
            described.extend(base.shift_remove(keyword).map(|text| (keyword.to_owned(), text)));
        }
        let mut converted = Vec::new();
        for (index, one) in alternatives.into_iter().enumerate() {
            let at = below(place, &index.to_string());
            let one = match one {
                Value::Object(one) if base.is_empty() => Value::Object(one),
                // The reference stays: the keywords of its target are merged once it is followed.
                Value::Object(one) => Value::Object(all_of(base.clone(), one, &at, self.notes)),
                Value::Bool(true) => Value::Object(base.clone()),
                other => other,
            };
            match self.schema(&one, &at, depth + 1) {
                Ok(one) if converted.contains(&one) => {}
                Ok(one) => converted.push(one),
                Err(reason) => self.notes.add(&at, &format!("this alternative is left out: {reason}")),
            }
        }
        match converted.len() {
            0 => Err(format!("`#{place}` has no alternative that can be stated")),
            1 if described.is_empty() => Ok(converted.remove(0)),
            _ => {
                described.insert("anyOf".to_owned(), Value::Array(converted));
                Ok(Value::Object(described))
            }
        }
    }

    /// Returns a schema for the values that the subset can state in place of any value.
    fn any_value(&mut self, place: &str) -> Value {
        self.notes.add(place, "any value is narrowed to a text, a number, a boolean or null");
        json!({ "anyOf": SCALARS.map(|kind| json!({ "type": kind })) })
    }
}

/// Returns the types of a schema: the stated ones, or those that its keywords and values imply.
fn kinds(fields: &Map<String, Value>) -> Vec<String> {
    match fields.get("type") {
        Some(Value::String(kind)) => return vec![kind.clone()],
        Some(Value::Array(kinds)) => return kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => {}
    }
    let values = fields.get("enum").and_then(Value::as_array).cloned();
    let values = values.or_else(|| fields.get("const").map(|value| vec![value.clone()]));
    if let Some(values) = values {
        let mut kinds: Vec<String> = values.iter().map(|value| kind_of(value).to_owned()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        return kinds;
    }
    let implied = [
        ("object", &["properties", "required", "additionalProperties", "patternProperties"][..]),
        ("array", &["items", "prefixItems", "minItems", "maxItems"]),
        ("string", &["pattern", "format", "minLength", "maxLength"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let found = implied.iter().find(|(_, keywords)| keywords.iter().any(|keyword| fields.contains_key(*keyword)));
    found.map(|(kind, _)| vec![(*kind).to_owned()]).unwrap_or_default()
}

/// Returns the type of a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
