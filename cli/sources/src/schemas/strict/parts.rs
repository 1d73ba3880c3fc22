//! Conversion of objects, arrays and values without parts.

use serde_json::{Map, Value, json};

use super::{Conversion, Converted, DESCRIPTIONS, SILENT, below, kind_of};

impl Conversion<'_> {
    /// Converts the schema of an object.
    pub(super) fn object(
        &mut self,
        mut fields: Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Converted<Map<String, Value>> {
        let kind = nullable_kind(&fields, "object");
        let mut properties = taken_object(&mut fields, "properties");
        let required: Vec<String> = match fields.shift_remove("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let further = fields.shift_remove("additionalProperties");
        let patterns = taken_object(&mut fields, "patternProperties");
        let is_open = further != Some(Value::Bool(false)) || !patterns.is_empty();
        for name in &required {
            if is_open && !properties.contains_key(name) {
                properties.insert(name.clone(), Value::Bool(true));
            }
        }
        if self.subset.closes_objects && is_open {
            if properties.is_empty() && !place.is_empty() {
                return Err(format!("`#{place}` is an object with members of any name"));
            }
            if further.as_ref().is_some_and(|schema| *schema != Value::Bool(false)) {
                self.notes.add(&below(place, "additionalProperties"), "left out: only named members can be sent");
            }
            if !patterns.is_empty() {
                self.notes.add(&below(place, "patternProperties"), "left out: only named members can be sent");
            }
        }
        let mut converted = Map::new();
        for (name, schema) in properties {
            let at = below(&below(place, "properties"), &name);
            let is_required = required.contains(&name);
            let value = match (self.subset.is_property_name)(&name) {
                true => self.schema(&schema, &at, depth + 1),
                false => Err(format!("`#{at}` has a name that the target refuses")),
            };
            match value {
                Ok(value) if self.subset.requires_all && !is_required => {
                    self.notes.add(&at, "optional: `null` means that it is absent; remove it before the call");
                    converted.insert(name, or_null(value));
                }
                Ok(value) => _ = converted.insert(name, value),
                Err(reason) if is_required => return Err(reason),
                Err(reason) => self.notes.add(&at, &format!("this optional argument is left out: {reason}")),
            }
        }
        let named: Vec<Value> = match self.subset.requires_all {
            true => converted.keys().map(|name| json!(name)).collect(),
            false => required.iter().filter(|name| converted.contains_key(*name)).map(|name| json!(name)).collect(),
        };
        let mut out = Map::from_iter([("type".to_owned(), kind)]);
        self.keep(fields, &mut out, place);
        out.insert("properties".to_owned(), Value::Object(converted));
        if !named.is_empty() || self.subset.requires_all {
            out.insert("required".to_owned(), Value::Array(named));
        }
        if self.subset.closes_objects {
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
            return Ok(out);
        }
        if !patterns.is_empty() {
            self.notes.add(&below(place, "patternProperties"), "left out: the target does not have it");
        }
        let at = below(place, "additionalProperties");
        match further {
            // Members that only a pattern allows must stay possible.
            Some(Value::Bool(false)) if !patterns.is_empty() => {}
            Some(Value::Bool(is_allowed)) => _ = out.insert("additionalProperties".to_owned(), json!(is_allowed)),
            Some(schema) => match self.schema(&schema, &at, depth + 1) {
                Ok(schema) => _ = out.insert("additionalProperties".to_owned(), schema),
                Err(reason) => self.notes.add(&at, &format!("left out: {reason}")),
            },
            None => {}
        }
        Ok(out)
    }

    /// Converts the schema of an array.
    pub(super) fn array(
        &mut self,
        mut fields: Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Converted<Map<String, Value>> {
        let kind = nullable_kind(&fields, "array");
        let mut items = fields.shift_remove("items");
        let mut first = fields.shift_remove("prefixItems");
        if items.as_ref().is_some_and(Value::is_array) {
            // Before 2020-12, an array of schemas has the meaning of `prefixItems`.
            first = items.take();
            items = fields.shift_remove("additionalItems");
        }
        let first = first.and_then(|first| first.as_array().cloned()).unwrap_or_default();
        let min = fields.shift_remove("minItems").and_then(|min| min.as_u64());
        let mut out = Map::from_iter([("type".to_owned(), kind)]);
        self.keep(fields, &mut out, place);
        if let Some(min) = min {
            if min > self.subset.max_min_items {
                let most = self.subset.max_min_items;
                self.notes.add(&below(place, "minItems"), &format!("lowered from {min} to {most}"));
            }
            out.insert("minItems".to_owned(), json!(min.min(self.subset.max_min_items)));
        }
        let at = below(place, "items");
        if !first.is_empty() && self.subset.has_tuples {
            let mut converted = Vec::new();
            for (index, one) in first.iter().enumerate() {
                let at = below(&below(place, "prefixItems"), &index.to_string());
                converted.push(self.schema(one, &at, depth + 1)?);
            }
            out.insert("prefixItems".to_owned(), Value::Array(converted));
        } else if !first.is_empty() {
            self.notes.add(&below(place, "prefixItems"), "each item may have the schema of any place");
            let more = items.take().filter(|items| *items != Value::Bool(false));
            items = Some(json!({ "anyOf": first.into_iter().chain(more).collect::<Vec<_>>() }));
        }
        match items {
            Some(Value::Bool(false)) if out.contains_key("prefixItems") => {
                self.notes.add(&at, "left out: the target does not have it");
            }
            Some(Value::Bool(false)) => return Err(format!("`#{place}` accepts only an empty array")),
            Some(items) => {
                let items = self.schema(&items, &at, depth + 1)?;
                out.insert("items".to_owned(), items);
            }
            None if out.contains_key("prefixItems") => {}
            None => {
                let items = self.any_value(&at);
                out.insert("items".to_owned(), items);
            }
        }
        Ok(out)
    }

    /// Converts the schema of a value without parts.
    pub(super) fn scalar(
        &mut self,
        mut fields: Map<String, Value>,
        kinds: &[String],
        place: &str,
    ) -> Map<String, Value> {
        let kind = if kinds.len() == 1 { json!(kinds[0]) } else { json!(kinds) };
        let mut out = Map::from_iter([("type".to_owned(), kind)]);
        let is_value = self.subset.is_enum_value;
        let constant = fields.shift_remove("const");
        let listed = fields.shift_remove("enum").and_then(|listed| listed.as_array().cloned());
        match constant {
            Some(value) if !is_value(&value) => {
                self.notes.add(&below(place, "const"), "left out: the target does not have such a value");
            }
            Some(value) if self.subset.has_const => _ = out.insert("const".to_owned(), value),
            Some(value) => _ = out.insert("enum".to_owned(), json!([value])),
            None => {}
        }
        if let Some(listed) = listed.filter(|_| !out.contains_key("const") && !out.contains_key("enum")) {
            let kept: Vec<&Value> = listed.iter().filter(|value| is_value(value) && is_of(value, kinds)).collect();
            if kept.len() < listed.len() {
                self.notes.add(&below(place, "enum"), "values that the target does not have are left out");
            }
            if !kept.is_empty() {
                out.insert("enum".to_owned(), json!(kept));
            }
        }
        if let Some(format) = fields.shift_remove("format") {
            let is_kept = |formats: &[&str]| format.as_str().is_some_and(|format| formats.contains(&format));
            match self.subset.formats.is_none_or(is_kept) {
                true => _ = out.insert("format".to_owned(), format),
                false => self.notes.add(&below(place, "format"), &format!("{format} is left out")),
            }
        }
        self.keep(fields, &mut out, place);
        out
    }

    /// Copies the keywords that the subset has, and notes each other one.
    pub(super) fn keep(&mut self, fields: Map<String, Value>, out: &mut Map<String, Value>, place: &str) {
        for (keyword, value) in fields {
            let word = keyword.as_str();
            if DESCRIPTIONS.contains(&word) || self.subset.keywords.contains(&word) {
                out.insert(keyword, value);
            } else if !SILENT.contains(&word) {
                self.notes.add(&below(place, word), "left out: the target does not have it");
            }
        }
    }
}

/// Removes a keyword with an object of subschemas.
fn taken_object(fields: &mut Map<String, Value>, keyword: &str) -> Map<String, Value> {
    match fields.shift_remove(keyword) {
        Some(Value::Object(named)) => named,
        _ => Map::new(),
    }
}

/// Returns `true` if a value has one of these types.
fn is_of(value: &Value, kinds: &[String]) -> bool {
    let kind = kind_of(value);
    kinds.iter().any(|known| known == kind || known == "number" && kind == "integer")
}

/// Returns the `type` of an object or array, which may also be null.
fn nullable_kind(fields: &Map<String, Value>, kind: &str) -> Value {
    let kinds = fields.get("type").and_then(Value::as_array);
    match kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null")) {
        true => json!([kind, "null"]),
        false => json!(kind),
    }
}

/// Returns a schema that also accepts `null`.
fn or_null(mut schema: Value) -> Value {
    let null = json!({ "type": "null" });
    let is_whole = schema.get("$ref").is_some() || schema.get("const").is_some();
    let Value::Object(fields) = &mut schema else { return schema };
    if is_whole {
        return json!({ "anyOf": [schema, (null)] });
    }
    if let Some(Value::Array(alternatives)) = fields.get_mut("anyOf") {
        if !alternatives.contains(&null) {
            alternatives.push(null);
        }
        return schema;
    }
    match fields.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.contains(&json!("null")) => kinds.push(json!("null")),
        Some(kind) if kind.as_str().is_some_and(|kind| kind != "null") => *kind = json!([kind.clone(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    schema
}
