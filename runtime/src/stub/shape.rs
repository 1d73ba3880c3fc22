//! Types of arguments and results, between a JSON Schema and the languages of the stubs.

use serde_json::Value;

/// Maximum number of alternatives in a union. A longer one is open.
const MAX_ALTERNATIVES: usize = 100;

/// Type of a JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type<'a> {
    /// Any value, or a type that is not expressed.
    Any,
    /// No value.
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    Literal(Literal<'a>),
    List(Box<Type<'a>>),
    Tuple(Tuple<'a>),
    /// Object with any names.
    Map(Box<Type<'a>>),
    Object(Object<'a>),
    /// Index of a [`Definition`].
    Named(usize),
    /// At least two alternatives, without unions among them.
    Union(Vec<Type<'a>>),
}

/// Value with a type of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Literal<'a> {
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
}

/// List with a type for each place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tuple<'a> {
    pub(super) items: Vec<Type<'a>>,
    /// Number of items that are always present.
    pub(super) required: usize,
    /// Type of further items; `None` if there are none.
    pub(super) rest: Option<Box<Type<'a>>>,
}

/// Object with named fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object<'a> {
    pub(super) fields: Vec<Field<'a>>,
    /// Type of fields with other names; `None` if the schema states none.
    pub(super) rest: Option<Box<Type<'a>>>,
}

/// Field of an object, or argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) value: Type<'a>,
    pub(super) is_required: bool,
    pub(super) default: Option<&'a Value>,
    /// Bounds of a number, such as `1..100`.
    pub(super) range: Option<String>,
    pub(super) description: Option<&'a str>,
}

/// Named type: the target of a reference.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a str,
    pub(super) value: Type<'a>,
}

/// Type of one schema with its named types.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    pub(super) root: Type<'a>,
    pub(super) definitions: Vec<Definition<'a>>,
}

impl<'a> Shape<'a> {
    /// Returns the type of the root without its name.
    pub(super) fn resolved(&self) -> &Type<'a> {
        match &self.root {
            Type::Named(index) => &self.definitions[*index].value,
            root => root,
        }
    }
}

impl<'a> Type<'a> {
    /// Joins alternatives.
    pub(super) fn union(alternatives: impl IntoIterator<Item = Type<'a>>) -> Self {
        let mut all: Vec<Type<'a>> = Vec::new();
        for one in alternatives {
            let several = match one {
                Type::Union(several) => several,
                one => vec![one],
            };
            for one in several {
                if one == Type::Any || all.len() == MAX_ALTERNATIVES {
                    return Type::Any;
                }
                if one != Type::Never && !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        let booleans = [true, false].map(|value| Type::Literal(Literal::Boolean(value)));
        if let Some(place) = all.iter().position(|one| booleans.contains(one))
            && booleans.iter().all(|one| all.contains(one))
        {
            all[place] = Type::Boolean;
        }
        let has = |kind: &Type<'_>| all.contains(kind);
        let (text, integer, number, boolean) =
            (has(&Type::Text), has(&Type::Integer), has(&Type::Number), has(&Type::Boolean));
        all.retain(|one| match one {
            Type::Literal(Literal::Text(_)) => !text,
            Type::Literal(Literal::Integer(_)) => !integer && !number,
            Type::Literal(Literal::Boolean(_)) => !boolean,
            Type::Integer => !number,
            _ => true,
        });
        // Stable: `null` moves to the end.
        all.sort_by_key(|one| *one == Type::Null);
        match all.len() {
            0 => Type::Never,
            1 => all.remove(0),
            _ => Type::Union(all),
        }
    }

    /// Returns `true` for a type that is shorter than its name would be.
    pub(super) fn is_atom(&self) -> bool {
        match self {
            Type::Object(_) | Type::Named(_) | Type::Union(_) | Type::Tuple(_) => false,
            Type::List(item) | Type::Map(item) => item.is_atom(),
            _ => true,
        }
    }

    /// Returns `true` if the type contains a named type.
    pub(super) fn has_name(&self) -> bool {
        match self {
            Type::Named(_) => true,
            Type::List(item) | Type::Map(item) => item.has_name(),
            Type::Tuple(Tuple { items, rest, .. }) => items.iter().chain(rest.as_deref()).any(Type::has_name),
            Type::Object(object) => object.fields.iter().any(|field| field.value.has_name()),
            Type::Union(all) => all.iter().any(Type::has_name),
            _ => false,
        }
    }

    /// Returns `true` if a default value is of this type. Types with fields and named types are not looked into.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match self {
            Type::Any => true,
            Type::Null => value.is_null(),
            Type::Boolean => value.is_boolean(),
            Type::Integer => value.is_i64() || value.is_u64(),
            Type::Number => value.is_number(),
            Type::Text => value.is_string(),
            Type::Literal(Literal::Text(text)) => value.as_str() == Some(text),
            Type::Literal(Literal::Integer(number)) => value.as_i64() == Some(*number),
            Type::Literal(Literal::Boolean(known)) => value.as_bool() == Some(*known),
            Type::List(item) => value.as_array().is_some_and(|all| all.iter().all(|one| item.accepts(one))),
            Type::Map(item) => value.as_object().is_some_and(|all| all.values().all(|one| item.accepts(one))),
            Type::Union(all) => all.iter().any(|one| one.accepts(value)),
            Type::Tuple(_) | Type::Object(_) | Type::Named(_) | Type::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_union_is_flat_and_has_no_part_of_another_alternative() {
        let text = |text| Type::Literal(Literal::Text(text));
        let nested = Type::union([text("a"), Type::Null, text("b"), text("a")]);
        assert_eq!(nested, Type::Union(vec![text("a"), text("b"), Type::Null]));
        assert_eq!(Type::union([nested.clone(), Type::Text]), Type::Union(vec![Type::Text, Type::Null]));
        assert_eq!(Type::union([nested, Type::Any]), Type::Any);
        assert_eq!(Type::union([Type::Integer, Type::Number, Type::Never]), Type::Number);
        assert_eq!(Type::union([true, false].map(|one| Type::Literal(Literal::Boolean(one)))), Type::Boolean);
        assert_eq!(Type::union([]), Type::Never);
    }

    #[test]
    fn a_union_with_too_many_alternatives_is_open() {
        let numbers = |count: usize| Type::union((0..count as i64).map(|one| Type::Literal(Literal::Integer(one))));
        assert!(matches!(numbers(MAX_ALTERNATIVES), Type::Union(all) if all.len() == MAX_ALTERNATIVES));
        assert_eq!(numbers(MAX_ALTERNATIVES + 1), Type::Any);
    }

    #[test]
    fn a_default_of_another_type_is_not_accepted() {
        let list = Type::List(Box::new(Type::Text));
        assert!(list.accepts(&json!(["a"])) && !list.accepts(&json!([1])) && !Type::Text.accepts(&json!(null)));
    }
}
