//! Recipes of this program.

use std::sync::LazyLock;

use toolcrib_base::suggestion;

use super::recipe::Recipe;

/// Texts of the recipes.
const TEXTS: [&str; 17] = [
    include_str!("../../recipes/avr-gcc.json"),
    include_str!("../../recipes/boolector.json"),
    include_str!("../../recipes/clang.json"),
    include_str!("../../recipes/cpython.json"),
    include_str!("../../recipes/esbuild.json"),
    include_str!("../../recipes/flite.json"),
    include_str!("../../recipes/geolibre.json"),
    include_str!("../../recipes/icepack.json"),
    include_str!("../../recipes/icepll.json"),
    include_str!("../../recipes/pdfcpu.json"),
    include_str!("../../recipes/php.json"),
    include_str!("../../recipes/quickjs.json"),
    include_str!("../../recipes/resvg.json"),
    include_str!("../../recipes/ripgrep.json"),
    include_str!("../../recipes/ruby.json"),
    include_str!("../../recipes/sqlite.json"),
    include_str!("../../recipes/yosys.json"),
];

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    TEXTS.iter().map(|text| Recipe::parse(text).expect("the recipes of the program are valid")).collect()
});

/// Lists the recipes, by name.
pub fn all() -> &'static [Recipe] {
    &RECIPES
}

/// Returns the recipe with a name.
pub(crate) fn find(name: &str) -> Option<Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name).cloned()
}

/// Returns the name of the recipe that is spelled most like a word.
pub fn nearest(word: &str) -> Option<&'static str> {
    suggestion::nearest(word, RECIPES.iter().map(|recipe| recipe.name.as_str()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_recipe_is_valid_and_listed_by_its_name() {
        let names: Vec<&str> = all().iter().map(|recipe| recipe.name.as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/recipes");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(files, names, "each recipe has the name of its file");
    }

    #[test]
    fn the_tools_of_every_recipe_load_with_its_programs() {
        // Any command stands for the programs, which are not part of the repository.
        let program = wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for recipe in all() {
            let file = folder.path().join(format!("{}.tar", recipe.name));
            let programs = recipe.programs.iter().map(|_| program.clone()).collect();
            super::super::bundle::write(recipe, programs, &file).unwrap();
            let loaded = toolcrib::source::load(&file).unwrap();
            let warnings: Vec<&str> = loaded.warnings.iter().map(|warning| warning.message.as_str()).collect();
            assert_eq!(warnings, [""; 0], "{}", recipe.name);
            assert_eq!(loaded.tools.len(), recipe.tools.len(), "{}", recipe.name);
            assert!(loaded.tools.iter().all(|tool| tool.description.is_some()), "{}", recipe.name);
        }
    }
}
