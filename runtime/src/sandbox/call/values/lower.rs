//! Conversion of JSON to engine values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use wasmtime::component::Val;

use crate::schema::typed::{ERROR, INFINITE, NEGATIVE_INFINITE, OK, SOME};
use crate::tool::typed::{Cases, Field, Function, Integer, Type};

/// Returns the arguments of a function in its parameters' order; `None` if they do not match, which the validation
/// before has already reported.
pub(in crate::sandbox::call) fn lower(function: &Function, arguments: &Map<String, Value>) -> Option<Vec<Val>> {
    function.params.iter().map(|param| field(param, arguments)).collect()
}

fn field(field: &Field, members: &Map<String, Value>) -> Option<Val> {
    match members.get(&field.name) {
        Some(json) => value(&field.ty, json),
        None => field.ty.takes_null().then_some(Val::Option(None)),
    }
}

fn value(ty: &Type, json: &Value) -> Option<Val> {
    Some(match ty {
        Type::Bool => Val::Bool(json.as_bool()?),
        Type::Integer(integer) => lower_integer(*integer, json)?,
        Type::F32 => Val::Float32(number(json)? as f32),
        Type::F64 => Val::Float64(number(json)?),
        Type::Char => Val::Char(json.as_str()?.chars().next()?),
        Type::String => Val::String(json.as_str()?.to_owned()),
        Type::Bytes => Val::List(STANDARD.decode(json.as_str()?).ok()?.into_iter().map(Val::U8).collect()),
        Type::List(item) => Val::List(json.as_array()?.iter().map(|json| value(item, json)).collect::<Option<_>>()?),
        Type::Map(sides) => Val::Map(entries(&sides.0, &sides.1, json)?),
        Type::Tuple(types) => {
            let items = types.iter().zip(json.as_array()?);
            Val::Tuple(items.map(|(ty, json)| value(ty, json)).collect::<Option<_>>()?)
        }
        Type::Record(record) => {
            let members = json.as_object()?;
            let fields = record.fields.iter().map(|part| Some((part.name.clone(), field(part, members)?)));
            Val::Record(fields.collect::<Option<_>>()?)
        }
        Type::Variant(cases) => {
            let (name, json) = case(json)?;
            let payload = payload(ty_of(cases, name)?, json)?;
            Val::Variant(name.to_owned(), payload)
        }
        Type::Enum(_) => Val::Enum(json.as_str()?.to_owned()),
        Type::Flags(_) => {
            let names = json.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned()));
            Val::Flags(names.collect::<Option<_>>()?)
        }
        Type::Option(_) if json.is_null() => Val::Option(None),
        Type::Option(inner) if inner.takes_null() => {
            Val::Option(Some(Box::new(value(inner, json.as_object()?.get(SOME)?)?)))
        }
        Type::Option(inner) => Val::Option(Some(Box::new(value(inner, json)?))),
        Type::Result(sides) => match case(json)? {
            (OK, json) => Val::Result(Ok(payload(sides.0.as_ref(), json)?)),
            (ERROR, json) => Val::Result(Err(payload(sides.1.as_ref(), json)?)),
            _ => return None,
        },
    })
}

/// Returns the name and the payload of a case.
fn case(json: &Value) -> Option<(&str, Option<&Value>)> {
    match json {
        Value::String(name) => Some((name, None)),
        other => other.as_object()?.iter().next().map(|(name, json)| (name.as_str(), Some(json))),
    }
}

fn ty_of<'a>(cases: &'a Cases, name: &str) -> Option<Option<&'a Type>> {
    cases.find(name).map(|case| case.ty.as_ref())
}

fn payload(ty: Option<&Type>, json: Option<&Value>) -> Option<Option<Box<Val>>> {
    match (ty, json) {
        (None, None) => Some(None),
        (Some(ty), Some(json)) => Some(Some(Box::new(value(ty, json)?))),
        _ => None,
    }
}

fn entries(key: &Type, entry: &Type, json: &Value) -> Option<Vec<(Val, Val)>> {
    match json {
        Value::Object(json) => {
            json.iter().map(|(name, json)| Some((Val::String(name.clone()), value(entry, json)?))).collect()
        }
        pairs => {
            let pair = |pair: &Value| match pair.as_array()?.as_slice() {
                [first, second] => Some((value(key, first)?, value(entry, second)?)),
                _ => None,
            };
            pairs.as_array()?.iter().map(pair).collect()
        }
    }
}

fn lower_integer(integer: Integer, json: &Value) -> Option<Val> {
    let number = json.as_number()?;
    // An integer may be written with a decimal point or an exponent.
    let whole = number.as_i128().or_else(|| {
        let wide = number.as_f64()?;
        (wide.fract() == 0.0).then_some(wide as i128)
    })?;
    Some(match integer {
        Integer::U8 => Val::U8(whole.try_into().ok()?),
        Integer::U16 => Val::U16(whole.try_into().ok()?),
        Integer::U32 => Val::U32(whole.try_into().ok()?),
        Integer::U64 => Val::U64(whole.try_into().ok()?),
        Integer::S8 => Val::S8(whole.try_into().ok()?),
        Integer::S16 => Val::S16(whole.try_into().ok()?),
        Integer::S32 => Val::S32(whole.try_into().ok()?),
        Integer::S64 => Val::S64(whole.try_into().ok()?),
    })
}

fn number(json: &Value) -> Option<f64> {
    match json.as_str() {
        None => json.as_f64(),
        Some(INFINITE) => Some(f64::INFINITY),
        Some(NEGATIVE_INFINITE) => Some(f64::NEG_INFINITY),
        Some(_) => Some(f64::NAN),
    }
}
