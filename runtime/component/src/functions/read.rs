//! The reader of exported functions and their types. A function that cannot be called with JSON is skipped with a reason; the
//! others stay usable.

use std::collections::HashMap;
use std::sync::Arc;

use toolcrib_foundation::text::{MAX_NAME, prefix};
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentItem, ComponentValType,
};
use wasmparser::types::TypesRef;
use wasmparser::{Payload, PrimitiveValType, Validator, WasmFeatures};

use crate::error::{Error, Result};
use crate::nesting::check_nesting;
use crate::sections::payloads;

use super::docs::{self, Docs, InterfaceDocs};
use super::is_contract;
use super::types::{Case, Cases, Field, Function, Integer, Record, Type};

/// Maximum functions of a component.
const MAX_FUNCTIONS: usize = 256;
/// Maximum parts of a function's types; a type that is used twice counts twice.
const MAX_PARTS: usize = 5000;
/// Maximum nesting depth of types. One level may be two in JSON, and at most 127 JSON levels are read.
const MAX_DEPTH: usize = 50;
/// Maximum schema bytes of one function, and of all functions in a component. Both are estimates, made before a schema
/// is written.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_TOTAL_SCHEMA_BYTES: usize = 2 << 20;
/// Estimated bytes of a type in a schema, without its names and texts.
const TYPE_BYTES: usize = 90;

/// Exports that compilers of languages leave behind: they initialized the program while it was built, and are no tools. Each
/// has a place and its first parameters, because a function of the author's may have the same name.
const BUILD_EXPORTS: [(&str, [&str; 2]); 2] = [("exports#init", ["app-name", "symbols"]), ("init", ["shim", "script"])];

/// Functions that a component exports outside of contracts with a host.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Exported {
    /// Functions that can be called.
    pub functions: Vec<Function>,
    /// Functions that cannot: the place of each, and the reason.
    pub skipped: Vec<(String, String)>,
}

/// Reads the exported functions of a component.
///
/// # Errors
///
/// The types cannot be read or exceed a limit.
pub fn read(program: &[u8]) -> Result<Exported> {
    check_nesting(program)?;
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let (mut exports, mut docs) = (Vec::new(), Docs::default());
    for payload in payloads(program) {
        let (depth, payload) = payload?;
        match &payload {
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section.clone() {
                    exports.push(export?.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) if depth == 0 && section.name() == docs::SECTION => {
                docs = Docs::read(section.data());
            }
            Payload::End(_) if depth == 0 => {
                let types = validator.types(0).ok_or_else(|| Error::Invalid("it is not a component".to_owned()))?;
                return of_exports(types, &exports, &docs);
            }
            _ => {}
        }
        validator.payload(&payload)?;
    }
    Err(Error::Invalid("it is truncated".to_owned()))
}

fn of_exports(types: TypesRef<'_>, exports: &[String], docs: &Docs) -> Result<Exported> {
    let mut exported = Exported::default();
    let mut left = MAX_TOTAL_SCHEMA_BYTES;
    let check_count = |exported: &Exported| match exported.functions.len() + exported.skipped.len() {
        0..=MAX_FUNCTIONS => Ok(()),
        _ => Err(Error::Limit(format!("it exports more than {MAX_FUNCTIONS} functions"))),
    };
    let own: Vec<_> = exports.iter().map(String::as_str).filter(|name| !is_contract(name)).collect();
    for name in own.iter().copied() {
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => {
                let mut reader = Reader::new(types, HashMap::new(), docs.of_world(&own));
                exported.add(None, name, reader.function(None, name, id, &mut left));
            }
            Some(ComponentEntityType::Instance(id)) => {
                let members = &types[id].exports;
                let mut reader = Reader::new(types, type_names(members), docs.of_interface(name, &own));
                for (function, item) in members {
                    if let ComponentEntityType::Func(id) = item.ty {
                        exported.add(Some(name), function, reader.function(Some(name), function, id, &mut left));
                        check_count(&exported)?;
                    }
                }
            }
            _ => {}
        }
        check_count(&exported)?;
    }
    Ok(exported)
}

/// Returns the names of an interface's types.
fn type_names<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a ComponentItem)>,
) -> HashMap<ComponentDefinedTypeId, &'a str> {
    let mut names = HashMap::new();
    for (name, item) in members {
        if let ComponentEntityType::Type { referenced, created } = item.ty {
            for id in [referenced, created] {
                if let ComponentAnyTypeId::Defined(id) = id {
                    names.insert(id, name.as_str());
                }
            }
        }
    }
    names
}

impl Exported {
    fn add(&mut self, interface: Option<&str>, name: &str, read: Result<Function, String>) {
        let place = || interface.map_or_else(|| name.to_owned(), |interface| format!("{interface}#{name}"));
        match read {
            Ok(function) if is_build_export(&function) => {}
            Ok(function) => self.functions.push(function),
            Err(reason) => self.skipped.push((place(), reason)),
        }
    }
}

fn is_build_export(function: &Function) -> bool {
    let begins =
        |params: &[&str]| function.params.iter().map(|param| param.name.as_str()).take(2).eq(params.iter().copied());
    BUILD_EXPORTS.iter().any(|(place, params)| function.to_string() == *place && begins(params))
}

/// A type with its weight: part count, estimated schema bytes, and nesting height.
#[derive(Clone)]
struct Weighed {
    ty: Type,
    parts: usize,
    bytes: usize,
    height: usize,
}

/// Reader of one interface's types. It reads each type once, however often it is used.
struct Reader<'a> {
    types: TypesRef<'a>,
    names: HashMap<ComponentDefinedTypeId, &'a str>,
    docs: InterfaceDocs<'a>,
    read: HashMap<ComponentDefinedTypeId, Weighed>,
}

impl<'a> Reader<'a> {
    fn new(types: TypesRef<'a>, names: HashMap<ComponentDefinedTypeId, &'a str>, docs: InterfaceDocs<'a>) -> Self {
        Self { types, names, docs, read: HashMap::new() }
    }

    /// Reads a function and takes the estimated bytes of its schemas from `left`.
    fn function(
        &mut self,
        interface: Option<&str>,
        name: &str,
        id: ComponentFuncTypeId,
        left: &mut usize,
    ) -> Result<Function, String> {
        if name.starts_with('[') {
            return Err("a part of a resource, and JSON has no handles".to_owned());
        }
        if name.len() > MAX_NAME {
            return Err(format!("its name is longer than {MAX_NAME} characters"));
        }
        let types = self.types;
        let ty = &types[id];
        if ty.async_ {
            return Err("asynchronous, which the sandbox does not support".to_owned());
        }
        let docs = self.docs.function(name);
        let mut weight = Weight { parts: 0, bytes: TYPE_BYTES + docs.as_ref().map_or(0, String::len), height: 0 };
        let mut params = Vec::with_capacity(ty.params.len());
        for (name, ty) in &ty.params {
            let short = || prefix(name, MAX_NAME);
            let read = self.value(ty, 1).map_err(|why| format!("its parameter `{}` is {why}", short()))?;
            weight.add_text(name, None);
            params.push(Field { name: name.to_string(), docs: None, ty: weight.take(read) });
        }
        let result = ty.result.as_ref().map(|ty| self.value(ty, 1)).transpose();
        let result = result.map_err(|why| format!("its result is {why}"))?.map(|read| weight.take(read));
        let Weight { parts, bytes, .. } = weight;
        if parts > MAX_PARTS {
            return Err(format!("its types consist of {parts} types, more than the {MAX_PARTS} allowed"));
        }
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!(
                "its schemas would have about {bytes} bytes, more than the {MAX_SCHEMA_BYTES} allowed"
            ));
        }
        *left = left.checked_sub(bytes).ok_or_else(|| {
            format!("the schemas of all functions together would have more than {MAX_TOTAL_SCHEMA_BYTES} bytes")
        })?;
        Ok(Function { interface: interface.map(str::to_owned), name: name.to_owned(), docs, params, result })
    }

    fn value(&mut self, ty: &ComponentValType, level: usize) -> Result<Weighed, String> {
        let id = match ty {
            ComponentValType::Primitive(ty) => {
                return Ok(Weighed { ty: primitive(*ty)?, parts: 1, bytes: TYPE_BYTES, height: 1 });
            }
            ComponentValType::Type(id) => *id,
        };
        let read = match self.read.get(&id) {
            Some(known) => known.clone(),
            None if level > MAX_DEPTH => return Err(too_deep()),
            None => {
                let read = self.defined(id, level)?;
                self.read.insert(id, read.clone());
                read
            }
        };
        if level + read.height > MAX_DEPTH + 1 { Err(too_deep()) } else { Ok(read) }
    }

    fn defined(&mut self, id: ComponentDefinedTypeId, level: usize) -> Result<Weighed, String> {
        let types = self.types;
        let named = self.names.get(&id).copied();
        let docs = named.and_then(|name| self.docs.ty(name));
        let mut weight = Weight { parts: 1, bytes: TYPE_BYTES + docs.as_ref().map_or(0, String::len), height: 0 };
        let member = |reader: &Self, member: &str| named.and_then(|name| reader.docs.member(name, member));
        let ty = match &types[id] {
            ComponentDefinedType::Primitive(ty) => primitive(*ty)?,
            ComponentDefinedType::Record(record) => {
                let mut fields = Vec::with_capacity(record.fields.len());
                for (name, ty) in &record.fields {
                    let (read, docs) = (self.value(ty, level + 1)?, member(self, name));
                    weight.add_text(name, docs.as_deref());
                    fields.push(Field { name: name.to_string(), docs, ty: weight.take(read) });
                }
                Type::Record(Arc::new(Record { docs, fields }))
            }
            ComponentDefinedType::Variant(variant) => {
                let mut cases = Vec::with_capacity(variant.cases.len());
                for (name, case) in &variant.cases {
                    let ty = case.ty.as_ref().map(|ty| self.value(ty, level + 1)).transpose()?;
                    let (ty, docs) = (ty.map(|ty| weight.take(ty)), member(self, name));
                    weight.add_text(name, docs.as_deref());
                    weight.parts += 1;
                    cases.push(Case { name: name.to_string(), docs, ty });
                }
                Type::Variant(Arc::new(Cases::new(docs, cases)))
            }
            ComponentDefinedType::Enum(names) | ComponentDefinedType::Flags(names) => {
                let case = |name: &str| Case { name: name.to_owned(), docs: member(self, name), ty: None };
                let cases: Vec<_> = names.iter().map(|name| case(name)).collect();
                cases.iter().for_each(|case| weight.add_text(&case.name, case.docs.as_deref()));
                weight.parts += cases.len();
                let cases = Arc::new(Cases::new(docs, cases));
                match &types[id] {
                    ComponentDefinedType::Enum(_) => Type::Enum(cases),
                    _ => Type::Flags(cases),
                }
            }
            ComponentDefinedType::List { element: ComponentValType::Primitive(PrimitiveValType::U8), .. } => {
                Type::Bytes
            }
            ComponentDefinedType::List { element, .. } => match weight.take(self.value(element, level + 1)?) {
                // A byte by another name.
                Type::Integer(Integer::U8) => Type::Bytes,
                item => Type::List(Arc::new(item)),
            },
            ComponentDefinedType::Map { key, value, .. } => {
                let key = weight.take(self.value(key, level + 1)?);
                Type::Map(Arc::new((key, weight.take(self.value(value, level + 1)?))))
            }
            ComponentDefinedType::Tuple(tuple) => {
                let mut items = Vec::with_capacity(tuple.types.len());
                for ty in &tuple.types {
                    items.push(weight.take(self.value(ty, level + 1)?));
                }
                Type::Tuple(items.into())
            }
            ComponentDefinedType::Option { ty, .. } => Type::Option(Arc::new(weight.take(self.value(ty, level + 1)?))),
            ComponentDefinedType::Result { ok, err, .. } => {
                let mut side = |ty: &Option<ComponentValType>| {
                    let read = ty.as_ref().map(|ty| self.value(ty, level + 1)).transpose()?;
                    Ok::<_, String>(read.map(|read| weight.take(read)))
                };
                Type::Result(Arc::new((side(ok)?, side(err)?)))
            }
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => {
                return Err("or holds a handle of a resource, which has no JSON form".to_owned());
            }
            ComponentDefinedType::Future { .. } | ComponentDefinedType::Stream { .. } => {
                return Err("or holds a stream or a future, which has no JSON form".to_owned());
            }
            ComponentDefinedType::FixedLengthList { .. } => {
                return Err("or holds a list of a fixed length, which the sandbox does not have".to_owned());
            }
        };
        Ok(Weighed { ty, parts: weight.parts, bytes: weight.bytes, height: weight.height + 1 })
    }
}

/// Weight of a type's members.
struct Weight {
    parts: usize,
    bytes: usize,
    height: usize,
}

impl Weight {
    /// Adds a member's type and returns it without its weight.
    fn take(&mut self, member: Weighed) -> Type {
        self.parts = self.parts.saturating_add(member.parts);
        self.bytes = self.bytes.saturating_add(member.bytes);
        self.height = self.height.max(member.height);
        member.ty
    }

    /// Adds the texts of a member. Its name counts twice: it is listed among the required members too.
    fn add_text(&mut self, name: &str, docs: Option<&str>) {
        let bytes = 2 * name.len() + docs.map_or(0, str::len) + TYPE_BYTES;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

fn primitive(ty: PrimitiveValType) -> Result<Type, String> {
    Ok(match ty {
        PrimitiveValType::Bool => Type::Bool,
        PrimitiveValType::U8 => Type::Integer(Integer::U8),
        PrimitiveValType::U16 => Type::Integer(Integer::U16),
        PrimitiveValType::U32 => Type::Integer(Integer::U32),
        PrimitiveValType::U64 => Type::Integer(Integer::U64),
        PrimitiveValType::S8 => Type::Integer(Integer::S8),
        PrimitiveValType::S16 => Type::Integer(Integer::S16),
        PrimitiveValType::S32 => Type::Integer(Integer::S32),
        PrimitiveValType::S64 => Type::Integer(Integer::S64),
        PrimitiveValType::F32 => Type::F32,
        PrimitiveValType::F64 => Type::F64,
        PrimitiveValType::Char => Type::Char,
        PrimitiveValType::String => Type::String,
        PrimitiveValType::ErrorContext => return Err("or holds an error context, which has no JSON form".to_owned()),
    })
}

fn too_deep() -> String {
    format!("of types nested deeper than {MAX_DEPTH} levels")
}
