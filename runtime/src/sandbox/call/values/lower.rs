//! Conversion of JSON to engine values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use wasmtime::component::Val;

use crate::schema::typed::{ERROR, INFINITE, NEGATIVE_INFINITE, OK, SOME};
use crate::tool::typed::{Cases, Field, Function, Integer, Type};

/// Returns the arguments of a function in the order of its parameters; `None` if they do not match, which the
/// validation before has already reported.
pub(in crate::sandbox::call) fn lower(function: &Function, arguments: &Map<String, Value>) -> Option<Vec<Val>> {
    function.params.iter().map(|param| field(param, arguments)).collect()
}

fn field(field: &Field, members: &Map<String, Value>) -> Option<Val> {
    match members.get(&field.name) {
        Some(found) => value(&field.ty, found),
        None => field.ty.takes_null().then_some(Val::Option(None)),
    }
}

fn value(ty: &Type, found: &Value) -> Option<Val> {
    Some(match ty {
        Type::Bool => Val::Bool(found.as_bool()?),
        Type::Integer(integer) => whole(*integer, found)?,
        Type::F32 => Val::Float32(number(found)? as f32),
        Type::F64 => Val::Float64(number(found)?),
        Type::Char => Val::Char(found.as_str()?.chars().next()?),
        Type::String => Val::String(found.as_str()?.to_owned()),
        Type::Bytes => Val::List(STANDARD.decode(found.as_str()?).ok()?.into_iter().map(Val::U8).collect()),
        Type::List(item) => Val::List(found.as_array()?.iter().map(|found| value(item, found)).collect::<Option<_>>()?),
        Type::Map(sides) => Val::Map(entries(&sides.0, &sides.1, found)?),
        Type::Tuple(types) => {
            let items = types.iter().zip(found.as_array()?);
            Val::Tuple(items.map(|(ty, found)| value(ty, found)).collect::<Option<_>>()?)
        }
        Type::Record(record) => {
            let members = found.as_object()?;
            let fields = record.fields.iter().map(|part| Some((part.name.clone(), field(part, members)?)));
            Val::Record(fields.collect::<Option<_>>()?)
        }
        Type::Variant(cases) => {
            let (name, found) = case(found)?;
            let carried = carried(ty_of(cases, name)?, found)?;
            Val::Variant(name.to_owned(), carried)
        }
        Type::Enum(_) => Val::Enum(found.as_str()?.to_owned()),
        Type::Flags(_) => {
            let names = found.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned()));
            Val::Flags(names.collect::<Option<_>>()?)
        }
        Type::Option(_) if found.is_null() => Val::Option(None),
        Type::Option(inner) if inner.takes_null() => {
            Val::Option(Some(Box::new(value(inner, found.as_object()?.get(SOME)?)?)))
        }
        Type::Option(inner) => Val::Option(Some(Box::new(value(inner, found)?))),
        Type::Result(sides) => match case(found)? {
            (OK, found) => Val::Result(Ok(carried(sides.0.as_ref(), found)?)),
            (ERROR, found) => Val::Result(Err(carried(sides.1.as_ref(), found)?)),
            _ => return None,
        },
    })
}

/// Returns the name and the payload of a case.
fn case(found: &Value) -> Option<(&str, Option<&Value>)> {
    match found {
        Value::String(name) => Some((name, None)),
        other => other.as_object()?.iter().next().map(|(name, found)| (name.as_str(), Some(found))),
    }
}

fn ty_of<'a>(cases: &'a Cases, name: &str) -> Option<Option<&'a Type>> {
    cases.find(name).map(|case| case.ty.as_ref())
}

fn carried(ty: Option<&Type>, found: Option<&Value>) -> Option<Option<Box<Val>>> {
    match (ty, found) {
        (None, None) => Some(None),
        (Some(ty), Some(found)) => Some(Some(Box::new(value(ty, found)?))),
        _ => None,
    }
}

fn entries(key: &Type, entry: &Type, found: &Value) -> Option<Vec<(Val, Val)>> {
    match found {
        Value::Object(found) => {
            found.iter().map(|(name, found)| Some((Val::String(name.clone()), value(entry, found)?))).collect()
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

fn whole(integer: Integer, found: &Value) -> Option<Val> {
    let number = found.as_number()?;
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

fn number(found: &Value) -> Option<f64> {
    match found.as_str() {
        None => found.as_f64(),
        Some(INFINITE) => Some(f64::INFINITY),
        Some(NEGATIVE_INFINITE) => Some(f64::NEG_INFINITY),
        Some(_) => Some(f64::NAN),
    }
}
