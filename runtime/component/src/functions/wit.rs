//! Embedding of WIT doc comments into a component. Compilers leave comments out.

use std::path::Path;

use wit_parser::{PackageMetadata, Resolve};

use crate::descriptor::with_section;
use crate::error::{Error, Result};

use super::{docs, read};

/// Returns the component with the doc comments of a WIT package for the functions and types that it exports. They replace
/// those that it had. The path is a file or a folder with its dependencies in `deps`, as WIT's own tools read it.
///
/// # Errors
///
/// The WIT or the component cannot be read, or the WIT documents none of the exported functions.
pub fn documented(program: &[u8], wit: &Path) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) =
        resolve.push_path(wit).map_err(|error| Error::Wit { message: format!("{error:#}"), source: error.into() })?;
    let name = resolve.packages[package].name.to_string();
    let section = PackageMetadata::extract(&resolve, package)
        .encode()
        .map_err(|error| Error::Wit { message: format!("{error:#}"), source: error.into() })?;
    if section.len() > docs::MAX_BYTES {
        let (bytes, max) = (section.len(), docs::MAX_BYTES);
        return Err(Error::Limit(format!(
            "the documentation in `{name}` has {bytes} bytes, more than the {max} allowed"
        )));
    }
    let documented = with_section(program, docs::SECTION, Some(&section))?;
    let exported = read(&documented)?;
    if exported.functions.iter().any(|function| function.docs.is_some()) {
        return Ok(documented);
    }
    let first = exported.functions.first().map_or_else(|| "no function".to_owned(), |it| format!("`{it}`"));
    Err(Error::Invalid(format!("`{name}` documents no function that the component exports, which has {first}")))
}
