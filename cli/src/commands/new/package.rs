//! Template of a tool in Rust: a package with a test, test cases and the SDK for this program version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolcrib_authoring::sdk;
use toolcrib_base::render::Advice;

use super::folder::create;

const MANIFEST: &str = include_str!("tool/Cargo.toml");
const SOURCE: &str = include_str!("tool/lib.rs");
const CASES: &str = include_str!("tool/tests.json");
const IGNORED: &str = "/target\n/*.wasm\n";

/// Example arguments for the tool.
pub(super) const EXAMPLE: &str = r#"{"name":"Ada"}"#;

/// Names reserved by Rust or cargo.
const RESERVED: [&str; 49] = [
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "union",
    "unsafe",
    "use",
    "where",
    "while",
    "yield",
    "alloc",
    "core",
    "std",
    "test",
    "proc_macro",
    "toolcrib_guest",
    "toolcrib_guest_macro",
    "tool",
];

/// Creates the package folder inside `dir`. The folder appears only when it is complete.
pub(super) fn write(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    check(name)?;
    if sdk::is_empty() {
        let hint = "use a build from the repository, or create a tool with `--markdown`";
        return Err(Advice::new("this build does not include the Rust SDK", hint).into());
    }
    create(dir, name, |folder| fill(folder, name))
}

fn fill(folder: &Path, name: &str) -> io::Result<()> {
    let function = name.replace('-', "_");
    let attribute = if function == name { "tool".to_owned() } else { format!("tool(name = {name:?})") };
    let source = SOURCE.replace("ATTRIBUTE", &attribute).replace("FUNCTION", &function);
    let manifest = MANIFEST.replace("NAME", name);
    let own = [("Cargo.toml", &*manifest), ("src/lib.rs", &source), ("tests.json", CASES), (".gitignore", IGNORED)];
    let own = own.into_iter().map(|(path, text)| (folder.join(path), text));
    let lock = sdk::lock_file().map(|(path, text)| (folder.join(path), text));
    for (path, text) in own.chain(lock) {
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    sdk::write(&folder.join(sdk::FOLDER))
}

/// Rejects names that are not valid for a crate and a function.
fn check(name: &str) -> anyhow::Result<()> {
    let hint =
        "choose another name: lowercase letters, digits, `_` and `-`, starting with a letter, and not a Rust keyword";
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains(|c: char| c.is_ascii_uppercase());
    if plain && !RESERVED.contains(&name.replace('-', "_").as_str()) {
        return Ok(());
    }
    Err(Advice::new(format!("`{name}` is not a valid Rust crate and function name"), hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_a_crate_and_a_function() {
        assert!(["greet", "my-tool", "fs_read2"].iter().all(|name| check(name).is_ok()));
        assert!(["Greet", "2x", "_x", "fn", "proc-macro", "std"].iter().all(|name| check(name).is_err()));
    }
}
