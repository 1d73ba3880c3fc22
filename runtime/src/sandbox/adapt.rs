//! From the bytes of a file to a component: a component is taken as it is, a core module for WASI preview 1 is adapted
//! with the published adapter. Nothing is executed.

use std::borrow::Cow;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

/// The component that the bytes hold or become, of a program that was looked at before.
///
/// # Errors
///
/// A text that says why the bytes are no program for the sandbox.
pub(super) fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if Parser::is_component(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let imports = imported_modules(bytes)?;
    if let Some(other) = imports.iter().find(|module| *module != WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME) {
        return Err(format!(
            "a core module that imports `{other}`; only `{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME}` can be adapted"
        ));
    }
    let encode = || {
        ComponentEncoder::default()
            .module(bytes)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
            .validate(true)
            .encode()
    };
    encode().map(Cow::Owned).map_err(|error| format!("a core module that cannot be adapted: {error:#}"))
}

fn imported_modules(bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut modules = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(|error| error.to_string())?;
                    modules.push(import.module.to_owned());
                }
            }
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    Ok(modules)
}
