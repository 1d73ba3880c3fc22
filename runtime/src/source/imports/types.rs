//! The types of a component, as far as imports and the safety of the host need them. They are walked here and not left
//! to the parser, which follows nested types with the stack of the host.

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeDeclaration, ComponentTypeRef,
};

/// The deepest that types or components may be nested, which is the parser's own bound for what it accepts.
const DEEPEST: usize = 100;
/// How the type of a component and that of an instance begin, and the declaration of a type inside of one.
const COMPONENT: u8 = 0x41;
const INSTANCE: u8 = 0x42;
const DECLARED_TYPE: u8 = 0x01;

/// The types of a section in order; of an instance type, the names of what it has but types.
pub(super) fn read(mut section: BinaryReader<'_>) -> Result<Vec<Option<Vec<String>>>, String> {
    let mut types = Vec::new();
    for _ in 0..section.read_var_u32().map_err(told)? {
        types.push(one(&mut section, 0)?);
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

fn one(section: &mut BinaryReader<'_>, depth: usize) -> Result<Option<Vec<String>>, String> {
    let kind = ahead(section, 0);
    if !matches!(kind, Some(COMPONENT | INSTANCE)) {
        section.read::<ComponentType<'_>>().map_err(told)?;
        return Ok(None);
    }
    if depth == DEEPEST {
        return Err(too_deep());
    }
    section.read_u8().map_err(told)?;
    let mut exports = Vec::new();
    for _ in 0..section.read_var_u32().map_err(told)? {
        if ahead(section, 0) == Some(DECLARED_TYPE) && matches!(ahead(section, 1), Some(COMPONENT | INSTANCE)) {
            section.read_u8().map_err(told)?;
            one(section, depth + 1)?;
            continue;
        }
        match section.read::<ComponentTypeDeclaration<'_>>().map_err(told)? {
            ComponentTypeDeclaration::Export { ty: ComponentTypeRef::Type(_), .. } => {}
            ComponentTypeDeclaration::Export { name, .. } => exports.push(name.name.to_owned()),
            _ => {}
        }
    }
    Ok((kind == Some(INSTANCE)).then_some(exports))
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
    format!("its types or components are nested deeper than {DEEPEST} levels")
}
