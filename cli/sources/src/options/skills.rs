//! Programs for the scripts in skills, from the settings or else from installed recipes.

use std::path::PathBuf;

use toolcrib::Builder;
use toolcrib::tool::ScriptLanguage;
use toolcrib_base::folders::user_folders;
use toolcrib_packages::install::available_here;
use toolcrib_packages::recipes::installed_program;
use toolcrib_settings::config::Config;

/// Folder below the user's cache for copies of skills.
const COPIES: &str = "skills";

/// Configures the programs for scripts of skills. Installed recipes are looked for only if a source has scripts.
pub(super) fn settle(builder: Builder, config: &Config) -> Builder {
    let (python, javascript) = (config.python.clone(), config.javascript.clone());
    // No tool changes what a later command runs.
    let builder = python.iter().chain(&javascript).fold(builder, Builder::protect);
    let find = move |language: ScriptLanguage| -> Option<PathBuf> {
        let (setting, recipe) = match language {
            ScriptLanguage::Python => (&python, "cpython"),
            ScriptLanguage::JavaScript => (&javascript, "quickjs"),
            _ => return None,
        };
        setting.clone().or_else(|| installed_program(&available_here().ok()?.bundles, recipe))
    };
    let builder = builder.skill_programs(find);
    user_folders().into_iter().fold(builder, |builder, user| builder.skill_copies(user.cache.join(COPIES)))
}
