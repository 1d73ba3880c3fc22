//! A function that a component exports, with the types of its WIT: what is called, with what, and what comes back. Names are
//! those of the WIT, as they stand there.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Which function of which component a tool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The component on the host.
    pub program: PathBuf,
    /// The function.
    pub function: Function,
}

/// A function as its component's type tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name of the exported interface, such as `example:words/text@0.1.0`; none where the function is exported alone.
    pub interface: Option<String>,
    /// The name of the function.
    pub name: String,
    /// What its WIT says about it, where the component carries that.
    pub docs: Option<String>,
    /// What it is called with, in order.
    pub params: Vec<Field>,
    /// What it returns, if it returns anything.
    pub result: Option<Type>,
}

impl fmt::Display for Function {
    /// The place of the function in its component: `INTERFACE#NAME`, or the name alone.
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
    /// Its name.
    pub name: String,
    /// What its WIT says about it.
    pub docs: Option<String>,
    /// Its type.
    pub ty: Type,
}

/// A case of a variant, of an enum, or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What its WIT says about it.
    pub docs: Option<String>,
    /// What it carries, where it can and does.
    pub ty: Option<Type>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What its WIT says about it.
    pub docs: Option<String>,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// The cases of a variant or an enum, or the flags of flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// What its WIT says about it.
    pub docs: Option<String>,
    cases: Vec<Case>,
    /// Their places in the order of their names: a value may name one of thousands, thousands of times.
    by_name: Vec<usize>,
}

impl Cases {
    /// Of these in their order.
    pub fn new(docs: Option<String>, cases: Vec<Case>) -> Self {
        let mut by_name: Vec<_> = (0..cases.len()).collect();
        by_name.sort_by(|left, right| cases[*left].name.cmp(&cases[*right].name));
        Self { docs, cases, by_name }
    }

    /// Them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter()
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|case| case.name.as_str())
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Case> {
        let found = self.by_name.binary_search_by(|at| self.cases[*at].name.as_str().cmp(name));
        found.ok().map(|at| &self.cases[self.by_name[at]])
    }
}

/// A type of a value that has a JSON form. Handles, streams and futures have none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// `list<T>` of anything else.
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
    /// `result<T, E>`, either of which may be absent.
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
    /// The least and the greatest value.
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

    /// Its name in WIT.
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
    /// Whether `null` is a value of it: then an option of it needs a word for "some".
    pub fn takes_null(&self) -> bool {
        matches!(self, Type::Option(_))
    }

    /// Its name in WIT, as far as that is one word.
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
