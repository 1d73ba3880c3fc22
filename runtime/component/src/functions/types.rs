//! An exported function with its WIT types. Names are unchanged from the WIT.

use std::fmt;
use std::sync::Arc;

/// A function that a component exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name of the exported interface, such as `example:words/text@0.1.0`; `None` for a function outside any interface.
    pub interface: Option<String>,
    /// Name of the function.
    pub name: String,
    /// Doc comment of its WIT, if the component carries it.
    pub docs: Option<String>,
    /// Parameters, in order.
    pub params: Vec<Field>,
    /// Type of the result, if it has one.
    pub result: Option<Type>,
}

impl fmt::Display for Function {
    /// Writes the place of the function in its component: `INTERFACE#NAME`, or the name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{interface}#{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A parameter, or a field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Doc comment of its WIT.
    pub docs: Option<String>,
    /// Type.
    pub ty: Type,
}

/// A case of a variant or an enum, or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name.
    pub name: String,
    /// Doc comment of its WIT.
    pub docs: Option<String>,
    /// Type of the payload, if it has one.
    pub ty: Option<Type>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Doc comment of its WIT.
    pub docs: Option<String>,
    /// Fields, in order.
    pub fields: Vec<Field>,
}

/// Cases of a variant or enum, or flag members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// Doc comment of its WIT.
    pub docs: Option<String>,
    cases: Vec<Case>,
    /// Indices in name order: a value may name one of thousands of cases, thousands of times.
    by_name: Vec<usize>,
}

impl Cases {
    /// Creates the cases, in this order.
    pub fn new(docs: Option<String>, cases: Vec<Case>) -> Self {
        let mut by_name: Vec<_> = (0..cases.len()).collect();
        by_name.sort_by(|left, right| cases[*left].name.cmp(&cases[*right].name));
        Self { docs, cases, by_name }
    }

    /// Returns the cases, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter()
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|case| case.name.as_str())
    }

    /// Returns the case of this name.
    pub fn find(&self, name: &str) -> Option<&Case> {
        let found = self.by_name.binary_search_by(|at| self.cases[*at].name.as_str().cmp(name));
        found.ok().map(|at| &self.cases[self.by_name[at]])
    }
}

/// Type of a value that has a JSON form. Handles, streams and futures have none. The enum is exhaustive on purpose: every
/// mapping of values covers every type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `bool`.
    Bool,
    /// An integer of any width.
    Integer(Integer),
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `char`: one Unicode scalar value.
    Char,
    /// `string`.
    String,
    /// `list<u8>`.
    Bytes,
    /// `list<T>` of another type.
    List(Arc<Type>),
    /// `map<K, V>`.
    Map(Arc<(Type, Type)>),
    /// `tuple<…>`.
    Tuple(Arc<[Type]>),
    /// A record.
    Record(Arc<Record>),
    /// A variant.
    Variant(Arc<Cases>),
    /// An enum.
    Enum(Arc<Cases>),
    /// Flags.
    Flags(Arc<Cases>),
    /// `option<T>`.
    Option(Arc<Type>),
    /// `result<T, E>`; either type may be absent.
    Result(Arc<(Option<Type>, Option<Type>)>),
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `s8`.
    S8,
    /// `s16`.
    S16,
    /// `s32`.
    S32,
    /// `s64`.
    S64,
}

impl Integer {
    /// Returns the minimum and the maximum.
    pub fn range(self) -> (i64, u64) {
        match self {
            Integer::U8 => (0, u8::MAX.into()),
            Integer::U16 => (0, u16::MAX.into()),
            Integer::U32 => (0, u32::MAX.into()),
            Integer::U64 => (0, u64::MAX),
            Integer::S8 => (i8::MIN.into(), i8::MAX as u64),
            Integer::S16 => (i16::MIN.into(), i16::MAX as u64),
            Integer::S32 => (i32::MIN.into(), i32::MAX as u64),
            Integer::S64 => (i64::MIN, i64::MAX as u64),
        }
    }

    /// Returns the name in WIT.
    pub fn as_str(self) -> &'static str {
        match self {
            Integer::U8 => "u8",
            Integer::U16 => "u16",
            Integer::U32 => "u32",
            Integer::U64 => "u64",
            Integer::S8 => "s8",
            Integer::S16 => "s16",
            Integer::S32 => "s32",
            Integer::S64 => "s64",
        }
    }
}

impl Type {
    /// Returns `true` if `null` is a value of the type: then an option around it needs a member for "some".
    pub fn takes_null(&self) -> bool {
        matches!(self, Type::Option(_))
    }

    /// Returns the first word of the name in WIT.
    pub fn as_str(&self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Integer(integer) => integer.as_str(),
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Char => "char",
            Type::String => "string",
            Type::Bytes => "list<u8>",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Tuple(_) => "tuple",
            Type::Record(_) => "record",
            Type::Variant(_) => "variant",
            Type::Enum(_) => "enum",
            Type::Flags(_) => "flags",
            Type::Option(_) => "option",
            Type::Result(_) => "result",
        }
    }
}
