//! The words of a WIT put into a component that was built without them: compilers leave out what stands in comments.

use std::path::Path;

use wit_parser::{PackageMetadata, Resolve};

use crate::source::descriptor::with_section;

use super::{docs, read};

/// The component with what the WIT at a path says about the functions and types that it exports, in the place of what it
/// said before. The path is a file or a folder with its dependencies in `deps`, read as WIT's own tools do.
///
/// # Errors
///
/// A text that says what is wrong with the WIT or the component, or that the one says nothing of the other.
pub fn documented(program: &[u8], wit: &Path) -> Result<Vec<u8>, String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).map_err(|error| format!("{error:#}"))?;
    let name = resolve.packages[package].name.to_string();
    let section = PackageMetadata::extract(&resolve, package).encode().map_err(|error| format!("{error:#}"))?;
    if section.len() > docs::MAX_BYTES {
        let bytes = section.len();
        return Err(format!("what `{name}` says has {bytes} bytes, and at most {} are read", docs::MAX_BYTES));
    }
    let documented = with_section(program, docs::SECTION, Some(&section))?;
    let exported = read(&documented)?;
    if exported.functions.iter().any(|function| function.docs.is_some()) {
        return Ok(documented);
    }
    let first = exported.functions.first().map_or_else(|| "no function".to_owned(), |it| format!("`{it}`"));
    Err(format!("`{name}` says nothing about a function that the component exports, which has {first}"))
}
