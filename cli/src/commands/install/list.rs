//! `toolcrib install --list`: the recipes of this program.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib_base::render::{self, one_line};
use toolcrib_packages::recipes;

const HEADINGS: [&str; 5] = ["RECIPE", "VERSION", "LICENCE", "PACKAGE", "USE"];

/// Prints the recipes, as a table or a JSON array.
pub(super) fn print(is_json: bool) -> anyhow::Result<ExitCode> {
    let all = recipes::all();
    if is_json {
        let list = all.iter().map(|recipe| {
            json!({
                "name": recipe.name,
                "version": recipe.version,
                "description": recipe.description,
                "licenses": recipe.licenses,
                "package": {
                    "registry": recipe.package.registry.as_str(),
                    "name": recipe.package.name,
                    "version": recipe.package.version,
                },
                "programs": recipe.programs.iter().map(|program| json!({
                    "name": program.name,
                    "digest": program.digest,
                })).collect::<Value>(),
            })
        });
        render::print_json(&list.collect::<Value>().to_string())?;
    } else {
        let rows = all.iter().map(|recipe| {
            let package = format!("{} {}", recipe.package.registry.as_str(), recipe.package.name);
            [&recipe.name, &recipe.version, &recipe.licenses, &package, &recipe.description].map(|cell| one_line(cell))
        });
        render::print(&render::table(HEADINGS, rows))?;
    }
    Ok(ExitCode::SUCCESS)
}
