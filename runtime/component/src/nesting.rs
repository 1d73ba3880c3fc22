//! The types of a component: names that instance types export, asynchronous types, and the bound on nesting. The types are
//! walked here because the parser follows nested types with the stack of the host.

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeDeclaration, ComponentTypeRef, Payload,
};

use crate::error::{Error, Result};
use crate::sections::{MAX_DEPTH, payloads};

/// First byte of a component type.
const COMPONENT: u8 = 0x41;
/// First byte of an instance type.
const INSTANCE: u8 = 0x42;
/// First byte in either for a type declaration.
const DECLARED_TYPE: u8 = 0x01;
/// Prefix of the custom sections that hold a core module's world: a component with types alone.
const WORLD: &str = "component-type";

/// Types of one section.
#[derive(Default)]
pub(crate) struct Types {
    /// Each type in order. For an instance type, the names of its exports other than types.
    pub(crate) exports: Vec<Option<Vec<String>>>,
    /// `true` if a type is an asynchronous function, a stream or a future.
    pub(crate) is_async: bool,
}

impl Types {
    /// Reads the body of a type section.
    ///
    /// # Errors
    ///
    /// The section is malformed or its types are nested too deep.
    pub(crate) fn read(mut section: BinaryReader<'_>) -> Result<Self> {
        let mut types = Self::default();
        for _ in 0..section.read_var_u32()? {
            let exports = types.read_one(&mut section, 0)?;
            types.exports.push(exports);
        }
        match section.eof() {
            true => Ok(types),
            false => Err(Error::Invalid("there are bytes after the last type of a section".to_owned())),
        }
    }

    fn read_one(&mut self, section: &mut BinaryReader<'_>, depth: usize) -> Result<Option<Vec<String>>> {
        let kind = peek(section, 0);
        if !matches!(kind, Some(COMPONENT | INSTANCE)) {
            self.is_async |= is_async(&section.read::<ComponentType<'_>>()?);
            return Ok(None);
        }
        if depth == MAX_DEPTH {
            return Err(too_deep());
        }
        section.read_u8()?;
        let mut exports = Vec::new();
        for _ in 0..section.read_var_u32()? {
            if peek(section, 0) == Some(DECLARED_TYPE) && matches!(peek(section, 1), Some(COMPONENT | INSTANCE)) {
                section.read_u8()?;
                self.read_one(section, depth + 1)?;
                continue;
            }
            match section.read::<ComponentTypeDeclaration<'_>>()? {
                ComponentTypeDeclaration::Type(ty) => self.is_async |= is_async(&ty),
                ComponentTypeDeclaration::Export { ty: ComponentTypeRef::Type(_), .. } => {}
                ComponentTypeDeclaration::Export { name, .. } => exports.push(name.name.to_owned()),
                _ => {}
            }
        }
        Ok((kind == Some(INSTANCE)).then_some(exports))
    }
}

/// Returns `true` if an alias adds a type to the component's index space of types.
pub(crate) fn is_type_alias(alias: &ComponentAlias<'_>) -> bool {
    matches!(
        alias,
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. }
            | ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, .. }
    )
}

/// Refuses a program with types or components nested so deep that reading them could exhaust the host's stack.
///
/// # Errors
///
/// The nesting is too deep, or the bytes cannot be parsed.
pub(crate) fn check_nesting(program: &[u8]) -> Result<()> {
    for world in worlds(program)? {
        // A world that cannot be parsed is reported by its reader.
        match worlds(world) {
            Err(error @ Error::Limit(_)) => return Err(error),
            _ => continue,
        }
    }
    Ok(())
}

/// Walks all types of a program and returns the worlds in its custom sections.
fn worlds(program: &[u8]) -> Result<Vec<&[u8]>> {
    let mut worlds = Vec::new();
    for payload in payloads(program) {
        match payload? {
            (_, Payload::ComponentTypeSection(section)) => {
                let body = program.get(section.range()).unwrap_or_default();
                Types::read(BinaryReader::new(body, section.range().start))?;
            }
            (MAX_DEPTH, Payload::ComponentSection { .. }) => return Err(too_deep()),
            (_, Payload::CustomSection(custom)) if custom.name().starts_with(WORLD) => worlds.push(custom.data()),
            _ => {}
        }
    }
    Ok(worlds)
}

/// Returns `true` for a type without nested declarations that only WASI 0.3 has.
fn is_async(ty: &ComponentType<'_>) -> bool {
    match ty {
        ComponentType::Func(function) => function.async_,
        ComponentType::Defined(ty) => {
            matches!(ty, ComponentDefinedType::Stream(_) | ComponentDefinedType::Future(_))
        }
        _ => false,
    }
}

/// Returns the byte `offset` bytes ahead without consuming it.
fn peek(section: &BinaryReader<'_>, offset: usize) -> Option<u8> {
    let mut section = section.clone();
    section.read_bytes(offset).ok()?;
    section.read_u8().ok()
}

fn too_deep() -> Error {
    Error::Limit(format!("its types or components are nested deeper than {MAX_DEPTH} levels"))
}
