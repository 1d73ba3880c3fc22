//! Bundle of a recipe. Equal programs and an equal recipe give an equal file.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use toolcrib::{Error, source};
use toolcrib_base::render::Advice;
use toolcrib_bundle::{BundleBuilder, BundledTool, MAX_TEXT_LENGTH, MediaType, Metadata, visible};

use super::recipe::Recipe;

/// Definition of the tools in the bundle.
const MANIFEST: &str = "tools.json";

/// Writes the bundle of a recipe with the bytes of its programs, in the order of the recipe.
///
/// # Errors
///
/// The recipe is faulty, or the file cannot be written.
pub(super) fn write(recipe: &Recipe, programs: Vec<Vec<u8>>, target: &Path) -> anyhow::Result<()> {
    let mut metadata = Metadata::new(&recipe.name, &recipe.version);
    metadata.description = Some(recipe.description.clone());
    metadata.licenses = Some(recipe.licenses.clone());
    let mut builder = BundleBuilder::new(metadata)?;
    let manifest = serde_json::to_vec_pretty(&json!({ "tools": recipe.tools }))?;
    let json = "application/json".parse::<MediaType>()?;
    builder.add_bytes(MANIFEST, json, manifest)?;
    for (program, bytes) in recipe.programs.iter().zip(programs) {
        builder.add_bytes(&format!("tools/bin/{}.wasm", program.name), MediaType::WASM, bytes)?;
    }
    for tool in &recipe.tools {
        let name = tool["name"].as_str().context("a tool has no name")?;
        let mut listed = BundledTool::new(name, MANIFEST.parse()?);
        listed.description = tool["description"].as_str().map(|text| visible(text, MAX_TEXT_LENGTH));
        builder.add_tool(listed);
    }
    builder.write_to(File::create_new(target)?)?;
    // A tool that cannot be used would be found on its first call.
    let reason = match source::load(target) {
        Ok(_) => return Ok(()),
        // The path of the bundle means nothing to the user.
        Err(Error::Source { message, .. }) => message,
        Err(Error::Unavailable { name, reason, .. }) => format!("tool `{name}`: {reason}"),
        Err(other) => other.to_string(),
    };
    Err(Advice::new(
        format!("the tools of the recipe `{}` cannot be used: {reason}", recipe.name),
        "correct `tools` of the recipe, or ask its author to",
    )
    .into())
}
