//! The types of a component, as far as imports and the safety of the host need them. They are walked here and not left
//! to the parser, which follows nested types with the stack of the host.

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeDeclaration, ComponentTypeRef, Parser, Payload,
};

/// The deepest that types or components may be nested, which is the parser's own bound for what it accepts.
const MAX_DEPTH: usize = 100;
/// How the type of a component and that of an instance begin, and the declaration of a type inside of one.
const COMPONENT: u8 = 0x41;
const INSTANCE: u8 = 0x42;
const DECLARED_TYPE: u8 = 0x01;

/// The types of a section in order; of an instance type, the names of what it has but types. Notes whether any is
/// asynchronous: a function, a stream or a future.
pub(super) fn read(
    mut section: BinaryReader<'_>,
    is_asynchronous: &mut bool,
) -> Result<Vec<Option<Vec<String>>>, String> {
    let mut types = Vec::new();
    for _ in 0..section.read_var_u32().map_err(told)? {
        types.push(one(&mut section, 0, is_asynchronous)?);
    }
    if section.eof() { Ok(types) } else { Err("something stands after the last type of a section".to_owned()) }
}

/// Whether an alias gives a number to a type.
pub(super) fn is_alias(alias: &ComponentAlias<'_>) -> bool {
    matches!(
        alias,
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. }
            | ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, .. }
    )
}

/// Refuses a program whose types or components are nested so deep that to read them could exhaust the host's stack.
///
/// # Errors
///
/// A text that says so, or why the bytes cannot be parsed.
pub(crate) fn check_nesting(program: &[u8]) -> Result<(), String> {
    let mut worlds = Vec::new();
    walk(program, &mut worlds)?;
    // Where a world cannot be parsed, whoever reads it will say so.
    let deep =
        worlds.into_iter().find_map(|world| walk(world, &mut Vec::new()).err().filter(|text| *text == too_deep()));
    deep.map_or(Ok(()), Err)
}

/// Walks all types of a program, and gathers what it says of the worlds it is for: components of types alone.
fn walk<'a>(program: &'a [u8], worlds: &mut Vec<&'a [u8]>) -> Result<(), String> {
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(program) {
        match payload.map_err(told)? {
            Payload::ComponentTypeSection(section) => {
                let body = program.get(section.range()).unwrap_or_default();
                read(BinaryReader::new(body, section.range().start), &mut false)?;
            }
            Payload::ComponentSection { .. } if depth == MAX_DEPTH => return Err(too_deep()),
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(custom) if custom.name().starts_with("component-type") => worlds.push(custom.data()),
            _ => {}
        }
    }
    Ok(())
}

fn one(
    section: &mut BinaryReader<'_>,
    depth: usize,
    is_asynchronous: &mut bool,
) -> Result<Option<Vec<String>>, String> {
    let kind = ahead(section, 0);
    if !matches!(kind, Some(COMPONENT | INSTANCE)) {
        *is_asynchronous |= has_async(&section.read::<ComponentType<'_>>().map_err(told)?);
        return Ok(None);
    }
    if depth == MAX_DEPTH {
        return Err(too_deep());
    }
    section.read_u8().map_err(told)?;
    let mut exports = Vec::new();
    for _ in 0..section.read_var_u32().map_err(told)? {
        if ahead(section, 0) == Some(DECLARED_TYPE) && matches!(ahead(section, 1), Some(COMPONENT | INSTANCE)) {
            section.read_u8().map_err(told)?;
            one(section, depth + 1, is_asynchronous)?;
            continue;
        }
        match section.read::<ComponentTypeDeclaration<'_>>().map_err(told)? {
            ComponentTypeDeclaration::Type(ty) => *is_asynchronous |= has_async(&ty),
            ComponentTypeDeclaration::Export { ty: ComponentTypeRef::Type(_), .. } => {}
            ComponentTypeDeclaration::Export { name, .. } => exports.push(name.name.to_owned()),
            _ => {}
        }
    }
    Ok((kind == Some(INSTANCE)).then_some(exports))
}

/// Returns true where a type that holds no others is of WASI 0.3 alone.
fn has_async(ty: &ComponentType<'_>) -> bool {
    match ty {
        ComponentType::Func(function) => function.async_,
        ComponentType::Defined(ty) => {
            matches!(ty, ComponentDefinedType::Stream(_) | ComponentDefinedType::Future(_))
        }
        _ => false,
    }
}

/// A byte that is still to come.
fn ahead(section: &BinaryReader<'_>, at: usize) -> Option<u8> {
    let mut section = section.clone();
    section.read_bytes(at).ok()?;
    section.read_u8().ok()
}

fn told(error: wasmparser::BinaryReaderError) -> String {
    error.to_string()
}

fn too_deep() -> String {
    format!("its types or components are nested deeper than {MAX_DEPTH} levels")
}
