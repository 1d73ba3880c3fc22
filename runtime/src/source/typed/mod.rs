//! The functions that a component exports, with their types, read from its bytes without running any of it. What cannot be
//! called with JSON is left out, with the reason; the rest stays usable.

mod docs;
mod naming;
mod wit;

use std::collections::HashMap;
use std::sync::Arc;

use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentItem, ComponentValType,
};
use wasmparser::types::TypesRef;
use wasmparser::{Parser, Payload, PrimitiveValType, Validator, WasmFeatures};

use crate::schema::typed as mapping;
use crate::tool::typed::{Case, Cases, Field, Function, Integer, Record, Type};

use super::imports::check_nesting;
use docs::{Docs, OfInterface};

pub(super) use naming::{Names, names};
pub use wit::documented;

/// The most functions of a component.
const MOST_FUNCTIONS: usize = 256;
/// The most types that a function's types are made of, each counted wherever it stands.
const MOST_PARTS: usize = 5000;
/// The deepest that they may be nested: each level may be two in JSON, of which 127 are read.
const DEEPEST: usize = 50;
/// The most bytes of a function's schemas together.
const MOST_SCHEMA_BYTES: usize = 256 << 10;

/// What compilers leave among the exports: it made the program ready while it was built, and is no tool. Each by its place
/// and its first parameters, for a function of one's own may have the same name.
const LEFT: [(&str, [&str; 2]); 2] = [("exports#init", ["app-name", "symbols"]), ("init", ["shim", "script"])];

/// What a component exports beside contracts with a host.
#[derive(Debug, Default)]
pub(super) struct Exported {
    /// What can be called.
    pub(super) functions: Vec<Function>,
    /// What cannot: where it stands, and why.
    pub(super) refused: Vec<(String, String)>,
}

/// Whether an export of this name is a contract with a host, and so no function of the component's own.
pub(crate) fn is_contract(name: &str) -> bool {
    name.starts_with("wasi:") || name.starts_with("toolcrib:")
}

/// Reads the functions of a component.
///
/// # Errors
///
/// A text that says why its types cannot be read, or what is too much.
pub(super) fn read(program: &[u8]) -> Result<Exported, String> {
    check_nesting(program)?;
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let (mut depth, mut exports, mut docs) = (0_usize, Vec::new(), Docs::default());
    for payload in Parser::new(0).parse_all(program) {
        let payload = payload.map_err(|error| error.to_string())?;
        match &payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section.clone() {
                    exports.push(export.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) if depth == 0 && section.name() == docs::SECTION => {
                docs = Docs::read(section.data());
            }
            Payload::End(_) if depth > 0 => depth -= 1,
            Payload::End(_) => {
                let known = validator.types(0).ok_or("it is no component")?;
                return Ok(of_exports(known, &exports, &docs)?);
            }
            _ => {}
        }
        validator.payload(&payload).map_err(|error| error.to_string())?;
    }
    Err("it breaks off".to_owned())
}

fn of_exports(known: TypesRef<'_>, exports: &[String], docs: &Docs) -> Result<Exported, String> {
    let mut exported = Exported::default();
    let mut count = 0;
    let mut counted = |exported: &Exported| {
        count = exported.functions.len() + exported.refused.len();
        if count > MOST_FUNCTIONS { Err(format!("it exports more than {MOST_FUNCTIONS} functions")) } else { Ok(()) }
    };
    for name in exports.iter().filter(|name| !is_contract(name)) {
        match known.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => {
                let mut reader = Reader::new(known, HashMap::new(), docs.of_world());
                exported.add(None, name, reader.function(None, name, id));
            }
            Some(ComponentEntityType::Instance(id)) => {
                let members = &known[id].exports;
                let mut reader = Reader::new(known, type_names(members), docs.of_interface(name));
                for (function, item) in members {
                    if let ComponentEntityType::Func(id) = item.ty {
                        exported.add(Some(name), function, reader.function(Some(name), function, id));
                        counted(&exported)?;
                    }
                }
            }
            _ => {}
        }
        counted(&exported)?;
    }
    Ok(exported)
}

/// The types of an interface that have a name.
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
            Ok(function) if is_left(&function) => {}
            Ok(function) => self.functions.push(function),
            Err(why) => self.refused.push((place(), why)),
        }
    }
}

fn is_left(function: &Function) -> bool {
    let begins =
        |params: &[&str]| function.params.iter().map(|param| param.name.as_str()).take(2).eq(params.iter().copied());
    LEFT.iter().any(|(place, params)| function.to_string() == *place && begins(params))
}

/// A type with what it weighs: the types that it is made of, and how deep they are nested.
#[derive(Clone)]
struct Weighed {
    ty: Type,
    parts: usize,
    height: usize,
}

/// Reads types of one interface. Each is read once, however often it is used.
struct Reader<'a> {
    known: TypesRef<'a>,
    names: HashMap<ComponentDefinedTypeId, &'a str>,
    docs: OfInterface<'a>,
    read: HashMap<ComponentDefinedTypeId, Weighed>,
}

impl<'a> Reader<'a> {
    fn new(known: TypesRef<'a>, names: HashMap<ComponentDefinedTypeId, &'a str>, docs: OfInterface<'a>) -> Self {
        Self { known, names, docs, read: HashMap::new() }
    }

    fn function(&mut self, interface: Option<&str>, name: &str, id: ComponentFuncTypeId) -> Result<Function, String> {
        if name.starts_with('[') {
            return Err("a part of a resource, and JSON has no handles".to_owned());
        }
        let known = self.known;
        let ty = &known[id];
        if ty.async_ {
            return Err("asynchronous, and the sandbox calls functions to their end".to_owned());
        }
        let mut parts = 0;
        let mut params = Vec::with_capacity(ty.params.len());
        for (name, ty) in &ty.params {
            let read = self.value(ty, 1).map_err(|why| format!("its parameter `{name}` is {why}"))?;
            parts += read.parts;
            params.push(Field { name: name.to_string(), docs: None, ty: read.ty });
        }
        let result = match &ty.result {
            Some(ty) => {
                let read = self.value(ty, 1).map_err(|why| format!("its result is {why}"))?;
                parts += read.parts;
                Some(read.ty)
            }
            None => None,
        };
        if parts > MOST_PARTS {
            return Err(format!("its types are made of {parts} types, and at most {MOST_PARTS} are described"));
        }
        let docs = self.docs.function(name);
        let function =
            Function { interface: interface.map(str::to_owned), name: name.to_owned(), docs, params, result };
        let schemas = [Some(mapping::arguments(&function)), mapping::output(&function)];
        let bytes: usize = schemas.iter().flatten().map(|schema| schema.to_string().len()).sum();
        if bytes > MOST_SCHEMA_BYTES {
            return Err(format!(
                "its schemas have {bytes} bytes, and at most {MOST_SCHEMA_BYTES} are given to a model"
            ));
        }
        Ok(function)
    }

    fn value(&mut self, ty: &ComponentValType, level: usize) -> Result<Weighed, String> {
        let id = match ty {
            ComponentValType::Primitive(ty) => return Ok(Weighed { ty: primitive(*ty)?, parts: 1, height: 1 }),
            ComponentValType::Type(id) => *id,
        };
        let read = match self.read.get(&id) {
            Some(known) => known.clone(),
            None if level > DEEPEST => return Err(too_deep()),
            None => {
                let read = self.defined(id, level)?;
                self.read.insert(id, read.clone());
                read
            }
        };
        if level + read.height > DEEPEST + 1 { Err(too_deep()) } else { Ok(read) }
    }

    fn defined(&mut self, id: ComponentDefinedTypeId, level: usize) -> Result<Weighed, String> {
        let known = self.known;
        let mut weight = Weight { parts: 1, height: 0 };
        let named = self.names.get(&id).copied();
        let docs = named.and_then(|name| self.docs.ty(name));
        let member = |reader: &Self, member: &str| named.and_then(|name| reader.docs.member(name, member));
        let ty = match &known[id] {
            ComponentDefinedType::Primitive(ty) => primitive(*ty)?,
            ComponentDefinedType::Record(record) => {
                let mut fields = Vec::with_capacity(record.fields.len());
                for (name, ty) in &record.fields {
                    let ty = weight.take(self.value(ty, level + 1)?);
                    fields.push(Field { name: name.to_string(), docs: member(self, name), ty });
                }
                Type::Record(Arc::new(Record { docs, fields }))
            }
            ComponentDefinedType::Variant(variant) => {
                let mut cases = Vec::with_capacity(variant.cases.len());
                for (name, case) in &variant.cases {
                    let ty = case.ty.as_ref().map(|ty| self.value(ty, level + 1)).transpose()?;
                    let ty = ty.map(|ty| weight.take(ty));
                    weight.parts += 1;
                    cases.push(Case { name: name.to_string(), docs: member(self, name), ty });
                }
                Type::Variant(Arc::new(Cases { docs, cases }))
            }
            ComponentDefinedType::Enum(names) | ComponentDefinedType::Flags(names) => {
                let case = |name: &str| Case { name: name.to_owned(), docs: member(self, name), ty: None };
                let cases: Vec<_> = names.iter().map(|name| case(name)).collect();
                weight.parts += cases.len();
                let cases = Arc::new(Cases { docs, cases });
                match &known[id] {
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
        Ok(Weighed { ty, parts: weight.parts, height: weight.height + 1 })
    }
}

/// What the members of a type weigh together.
struct Weight {
    parts: usize,
    height: usize,
}

impl Weight {
    fn take(&mut self, member: Weighed) -> Type {
        self.parts = self.parts.saturating_add(member.parts);
        self.height = self.height.max(member.height);
        member.ty
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
    format!("of types nested deeper than {DEEPEST} levels")
}
