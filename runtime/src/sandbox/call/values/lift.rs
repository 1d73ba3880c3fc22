//! Conversion of engine values to one JSON line, written directly into the text and bounded while it is written.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wasmtime::component::Val;

use crate::schema::typed::{ERROR, INFINITE, NEGATIVE_INFINITE, NOT_A_NUMBER, OK, SOME};
use crate::tool::typed::{Cases, Type};

/// Reason why a value has no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sandbox::call) enum LiftError {
    /// The text exceeds its maximum length.
    TooLong,
    /// The value does not have its type: the program was changed after its types were read.
    TypeMismatch,
}

/// Returns a value's JSON, of at most `max` bytes.
pub(in crate::sandbox::call) fn to_json(ty: &Type, value: &Val, max: usize) -> Result<String, LiftError> {
    let mut line = JsonLine { text: String::new(), max };
    line.value(ty, value)?;
    Ok(line.text)
}

struct JsonLine {
    text: String,
    max: usize,
}

impl JsonLine {
    fn put(&mut self, text: &str) -> Result<(), LiftError> {
        if self.text.len() + text.len() > self.max {
            return Err(LiftError::TooLong);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn value(&mut self, ty: &Type, value: &Val) -> Result<(), LiftError> {
        match (ty, value) {
            (Type::Bool, Val::Bool(value)) => self.put(if *value { "true" } else { "false" }),
            (Type::Integer(_), value) => self.put(&integer(value).ok_or(LiftError::TypeMismatch)?),
            (Type::F32, Val::Float32(value)) => match value.is_finite() {
                // Printed with the precision of its own width: 0.1 as `0.1`, not as the nearest 64-bit number.
                true => self.put(&shortest(*value)),
                false => self.infinite((*value).into()),
            },
            (Type::F64, Val::Float64(value)) => match value.is_finite() {
                true => self.put(&shortest(*value)),
                false => self.infinite(*value),
            },
            (Type::Char, Val::Char(value)) => self.string(value.encode_utf8(&mut [0; 4])),
            (Type::String, Val::String(value)) => self.string(value),
            (Type::Bytes, Val::List(items)) => {
                // Base64 needs four characters for three bytes. A value that would exceed the maximum is not encoded.
                if self.text.len() + items.len() > self.max {
                    return Err(LiftError::TooLong);
                }
                let byte = |item: &Val| match item {
                    Val::U8(byte) => Ok(*byte),
                    _ => Err(LiftError::TypeMismatch),
                };
                let bytes = items.iter().map(byte).collect::<Result<Vec<_>, _>>()?;
                self.string(&STANDARD.encode(bytes))
            }
            (Type::List(ty), Val::List(items)) => self.list(items, |line, item| line.value(ty, item)),
            (Type::Tuple(types), Val::Tuple(items)) if types.len() == items.len() => {
                let items: Vec<_> = types.iter().zip(items).collect();
                self.list(&items, |line, (ty, item)| line.value(ty, item))
            }
            (Type::Map(sides), Val::Map(entries)) => self.map(&sides.0, &sides.1, entries),
            (Type::Record(record), Val::Record(fields)) if record.fields.len() == fields.len() => {
                self.put("{")?;
                for (index, (field, (name, value))) in record.fields.iter().zip(fields).enumerate() {
                    if field.name != *name {
                        return Err(LiftError::TypeMismatch);
                    }
                    self.member(index, name)?;
                    self.value(&field.ty, value)?;
                }
                self.put("}")
            }
            (Type::Variant(cases), Val::Variant(name, payload)) => {
                let ty = cases.find(name).ok_or(LiftError::TypeMismatch)?.ty.as_ref();
                self.case(name, ty, payload.as_deref())
            }
            (Type::Enum(cases), Val::Enum(name)) => self.name(cases, name),
            (Type::Flags(cases), Val::Flags(names)) => self.list(names, |line, name| line.name(cases, name)),
            (Type::Option(_), Val::Option(None)) => self.put("null"),
            (Type::Option(inner), Val::Option(Some(value))) if inner.takes_null() => {
                self.case(SOME, Some(inner), Some(value))
            }
            (Type::Option(inner), Val::Option(Some(value))) => self.value(inner, value),
            (Type::Result(sides), Val::Result(result)) => match result {
                Ok(payload) => self.case(OK, sides.0.as_ref(), payload.as_deref()),
                Err(payload) => self.case(ERROR, sides.1.as_ref(), payload.as_deref()),
            },
            _ => Err(LiftError::TypeMismatch),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), LiftError> {
        if self.text.len() + text.len() > self.max {
            return Err(LiftError::TooLong);
        }
        self.put(&serde_json::to_string(text).map_err(|_| LiftError::TypeMismatch)?)
    }

    fn infinite(&mut self, value: f64) -> Result<(), LiftError> {
        self.string(match value {
            f64::INFINITY => INFINITE,
            f64::NEG_INFINITY => NEGATIVE_INFINITE,
            _ => NOT_A_NUMBER,
        })
    }

    fn name(&mut self, cases: &Cases, name: &str) -> Result<(), LiftError> {
        match cases.find(name) {
            Some(_) => self.string(name),
            None => Err(LiftError::TypeMismatch),
        }
    }

    /// Writes the name of a member, after a comma if it is not the first.
    fn member(&mut self, index: usize, name: &str) -> Result<(), LiftError> {
        if index > 0 {
            self.put(",")?;
        }
        self.string(name)?;
        self.put(":")
    }

    fn list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> Result<(), LiftError>,
    ) -> Result<(), LiftError> {
        self.put("[")?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(",")?;
            }
            write(self, item)?;
        }
        self.put("]")
    }

    fn case(&mut self, name: &str, ty: Option<&Type>, payload: Option<&Val>) -> Result<(), LiftError> {
        match (ty, payload) {
            (None, None) => self.string(name),
            (Some(ty), Some(value)) => {
                self.put("{")?;
                self.member(0, name)?;
                self.value(ty, value)?;
                self.put("}")
            }
            _ => Err(LiftError::TypeMismatch),
        }
    }

    /// Writes a map. With text keys it is an object, and the last entry of a duplicate key is used.
    fn map(&mut self, key: &Type, ty: &Type, entries: &[(Val, Val)]) -> Result<(), LiftError> {
        if *key != Type::String {
            return self.list(entries, |line, (first, second)| {
                line.put("[")?;
                line.value(key, first)?;
                line.put(",")?;
                line.value(ty, second)?;
                line.put("]")
            });
        }
        let mut last = std::collections::BTreeMap::new();
        for (name, value) in entries {
            let Val::String(name) = name else { return Err(LiftError::TypeMismatch) };
            last.insert(name.as_str(), value);
        }
        self.put("{")?;
        for (index, (name, value)) in last.into_iter().enumerate() {
            self.member(index, name)?;
            self.value(ty, value)?;
        }
        self.put("}")
    }
}

fn integer(value: &Val) -> Option<String> {
    Some(match value {
        Val::U8(value) => value.to_string(),
        Val::U16(value) => value.to_string(),
        Val::U32(value) => value.to_string(),
        Val::U64(value) => value.to_string(),
        Val::S8(value) => value.to_string(),
        Val::S16(value) => value.to_string(),
        Val::S32(value) => value.to_string(),
        Val::S64(value) => value.to_string(),
        _ => return None,
    })
}

/// Returns a finite number in the fewest digits that represent it.
fn shortest(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}
