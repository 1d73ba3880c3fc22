//! Programs of installed recipes.

use std::path::PathBuf;

use toolcrib::source::fingerprint;

use crate::install::AvailableBundle;

use super::shipped::find;

/// Finds a recipe's program among installed bundles. Its digest must be the one that this version's recipe states: a bundle of the
/// same name from elsewhere does not count.
pub fn installed_program(bundles: &[AvailableBundle], recipe: &str) -> Option<PathBuf> {
    let program = find(recipe)?.programs.into_iter().next()?;
    let file = |bundle: &AvailableBundle| bundle.file.join(format!("tools/bin/{}.wasm", program.name));
    let is_program = |file: &PathBuf| fingerprint(file).is_ok_and(|found| found.digest == program.digest);
    bundles.iter().filter(|bundle| bundle.name == recipe).map(file).find(is_program)
}
