//! Recipes: published programs as tools. A recipe names a package, the programs in it by their digests, and the tools that they
//! are. Installing one fetches the package by its own package manager, whose registry, proxies and credentials the user has set,
//! checks the digests, and packs a bundle, which is reviewed like any other.

mod archive;
mod bundle;
mod installed;
mod package;
mod process;
mod recipe;
mod shipped;

use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;
use toolcrib_base::input;
use toolcrib_base::render::Advice;

pub use installed::installed_program;
pub use recipe::{Recipe, Registry};
pub(crate) use shipped::find;
pub use shipped::{all, nearest};

/// Scheme of a recipe in a lock.
pub(crate) const SCHEME: &str = "recipe:";
/// End of the name of a file with a recipe.
pub(crate) const EXTENSION: &str = ".recipe.json";
/// Maximum size of a file with a recipe in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Source of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipeSource {
    /// Recipe of this program, by its name.
    Shipped(String),
    /// File, as an absolute path.
    File(PathBuf),
}

impl RecipeSource {
    /// Reads the recipe.
    ///
    /// # Errors
    ///
    /// There is no such recipe, or it is faulty.
    pub fn read(&self) -> anyhow::Result<Recipe> {
        match self {
            Self::Shipped(name) => shipped::find(name).ok_or_else(|| {
                let hint = match shipped::nearest(name) {
                    Some(like) => format!("did you mean `{like}`? `toolcrib install --list` lists the recipes"),
                    None => "`toolcrib install --list` lists the recipes".to_owned(),
                };
                Advice::new(format!("this version of toolcrib has no recipe `{name}`"), hint).into()
            }),
            Self::File(path) => {
                let failed = || format!("cannot read the recipe `{}`", path.display());
                let bytes = input::bytes(path, MAX_BYTES).with_context(failed)?;
                Recipe::parse(std::str::from_utf8(&bytes).with_context(failed)?).with_context(failed)
            }
        }
    }
}

/// Bundle of a recipe that was packed.
pub(crate) struct PackedRecipe {
    pub(crate) file: PathBuf,
    /// Folder of the file, which exists as long as this value.
    pub(crate) folder: TempDir,
}

/// Fetches the package of a recipe, or takes the programs from `local`, and packs a bundle.
///
/// # Errors
///
/// The package cannot be fetched, or a program is not the one that the recipe names.
pub(crate) async fn pack(recipe: &Recipe, local: Option<&Path>, offline: bool) -> anyhow::Result<PackedRecipe> {
    let folder = tempfile::Builder::new().prefix("toolcrib-recipe-").tempdir();
    let folder = folder.context("cannot create a temporary folder")?;
    let programs = package::programs(recipe, local, offline, folder.path()).await?;
    let file = folder.path().join("recipe.tar");
    let (recipe, target) = (recipe.clone(), file.clone());
    tokio::task::spawn_blocking(move || bundle::write(&recipe, programs, &target)).await??;
    Ok(PackedRecipe { file, folder })
}
