//! The JSON Schemas of a function: one for the object with its arguments, one for its result.

use serde_json::{Map, Value, json};

use crate::tool::typed::{Case, Cases, Field, Function, Type};

use super::{ERROR, INFINITE, NEGATIVE_INFINITE, NOT_A_NUMBER, OK, SOME};

/// Direction of a schema. A result may hold `"NaN"` for a number; the schema of an argument does not offer that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Argument,
    Result,
}

/// Returns the schema of the arguments.
pub(crate) fn arguments(function: &Function) -> Value {
    object(&function.params, Side::Argument)
}

/// Returns the result's schema, if there is one; for a `result`, the schema of its `ok` value.
pub(crate) fn output(function: &Function) -> Option<Value> {
    match function.result.as_ref()? {
        Type::Result(sides) => sides.0.as_ref(),
        other => Some(other),
    }
    .map(|ty| schema(ty, Side::Result))
}

/// Returns the schema of a type.
fn schema(ty: &Type, side: Side) -> Value {
    match ty {
        Type::Bool => json!({"type": "boolean"}),
        Type::Integer(integer) => {
            let (least, most) = integer.range();
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Type::F32 | Type::F64 if side == Side::Argument => json!({"type": "number"}),
        Type::F32 | Type::F64 => {
            json!({"anyOf": [{"type": "number"}, {"enum": [NOT_A_NUMBER, INFINITE, NEGATIVE_INFINITE]}]})
        }
        Type::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
        Type::String => json!({"type": "string"}),
        Type::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Type::List(item) => json!({"type": "array", "items": schema(item, side)}),
        Type::Map(sides) => match &sides.0 {
            Type::String => json!({"type": "object", "additionalProperties": schema(&sides.1, side)}),
            key => json!({"type": "array", "items": tuple([key, &sides.1], side)}),
        },
        Type::Tuple(items) => tuple(items.iter(), side),
        Type::Record(record) => described(object(&record.fields, side), record.docs.as_deref()),
        Type::Variant(cases) => described(variant(cases.iter().map(Alternative::of), side), cases.docs.as_deref()),
        Type::Enum(cases) => described(json!({"type": "string", "enum": names(cases)}), docs(cases).as_deref()),
        Type::Flags(cases) => {
            let names = json!({"type": "string", "enum": names(cases)});
            described(json!({"type": "array", "items": names, "uniqueItems": true}), docs(cases).as_deref())
        }
        Type::Option(inner) => {
            let mut inner_schema = schema(inner, side);
            if inner.takes_null() {
                inner_schema = single_member(SOME, inner_schema);
            }
            json!({"anyOf": [inner_schema, {"type": "null"}]})
        }
        Type::Result(sides) => {
            let case = |name, ty| Alternative { name, docs: None, ty };
            variant([case(OK, sides.0.as_ref()), case(ERROR, sides.1.as_ref())].into_iter(), side)
        }
    }
}

fn object(fields: &[Field], side: Side) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let schema = schema(&field.ty, side);
            // Docs of the field replace docs of its type.
            (field.name.clone(), described(schema, field.docs.as_deref()))
        })
        .collect();
    let required: Vec<_> =
        fields.iter().filter(|field| !field.ty.takes_null()).map(|field| field.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn tuple<'a>(items: impl IntoIterator<Item = &'a Type>, side: Side) -> Value {
    let items: Vec<_> = items.into_iter().map(|item| schema(item, side)).collect();
    let count = items.len();
    json!({"type": "array", "prefixItems": items, "items": false, "minItems": count, "maxItems": count})
}

/// One case of a variant.
struct Alternative<'a> {
    name: &'a str,
    docs: Option<&'a str>,
    ty: Option<&'a Type>,
}

impl<'a> Alternative<'a> {
    fn of(case: &'a Case) -> Self {
        Self { name: &case.name, docs: case.docs.as_deref(), ty: case.ty.as_ref() }
    }
}

fn variant<'a>(cases: impl Iterator<Item = Alternative<'a>>, side: Side) -> Value {
    let cases = cases.map(|Alternative { name, docs, ty }| {
        let schema = match ty {
            Some(ty) => single_member(name, schema(ty, side)),
            None => json!({"const": name}),
        };
        described(schema, docs)
    });
    json!({"oneOf": cases.collect::<Vec<_>>()})
}

/// Returns the schema of an object with one member.
fn single_member(name: &str, schema: Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false})
}

fn names(cases: &Cases) -> Vec<&str> {
    cases.names().collect()
}

/// Joins the docs of cases, which have no schemas themselves.
fn docs(cases: &Cases) -> Option<String> {
    let each = cases.iter().filter_map(|case| Some(format!("`{}`: {}", case.name, case.docs.as_deref()?)));
    let lines: Vec<String> = cases.docs.clone().into_iter().chain(each).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn described(mut schema: Value, docs: Option<&str>) -> Value {
    if let Some(docs) = docs {
        schema["description"] = json!(docs);
    }
    schema
}
