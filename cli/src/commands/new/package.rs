//! A tool in Rust to begin with: a package with its test, its cases, and the SDK that belongs to this program, since none is on a
//! registry.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::component::UNFINISHED;
use crate::render::Advice;

/// The SDK: paths and texts. A build without the guests' workspace has none.
static SDK: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
/// The versions of what the SDK needs, which begin the package's own.
const LOCK: &str = "Cargo.lock";

const MANIFEST: &str = include_str!("tool/Cargo.toml");
const SOURCE: &str = include_str!("tool/lib.rs");
const CASES: &str = include_str!("tool/tests.json");
const IGNORED: &str = "/target\n/*.wasm\n";

/// Arguments with which the tool does something.
pub(super) const EXAMPLE: &str = r#"{"name":"Ada"}"#;

/// Names that mean something else to Rust or cargo: those of functions, and those of crates.
const TAKEN: [&str; 49] = [
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

/// Writes the folder of a tool into another; it appears there when it is whole.
pub(super) fn write(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    check(name)?;
    if SDK.is_empty() {
        let hint = "use a program that was built in its repository, or begin a tool with `--markdown`";
        return Err(Advice::new("this program was built without the SDK for tools in Rust", hint).into());
    }
    let folder = dir.join(name);
    let told = || format!("cannot write `{}`", folder.display());
    match fs::symlink_metadata(&folder) {
        Ok(_) => {
            let hint = "nothing is written over: choose another name, or remove that first";
            return Err(Advice::new(format!("`{}` is there already", folder.display()), hint).into());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(told),
    }
    fs::create_dir_all(dir).with_context(told)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(dir).with_context(told)?;
    let fresh = unfinished.path().join(name);
    fill(&fresh, name).and_then(|()| fs::rename(&fresh, &folder)).with_context(told)?;
    Ok(folder)
}

fn fill(folder: &Path, name: &str) -> io::Result<()> {
    let function = name.replace('-', "_");
    let attribute = if function == name { "tool".to_owned() } else { format!("tool(name = {name:?})") };
    let source = SOURCE.replace("ATTRIBUTE", &attribute).replace("FUNCTION", &function);
    let manifest = MANIFEST.replace("NAME", name);
    let own = [("Cargo.toml", &*manifest), ("src/lib.rs", &source), ("tests.json", CASES), (".gitignore", IGNORED)];
    let own = own.into_iter().map(|(path, text)| (folder.join(path), text));
    let sdk = SDK.iter().map(|(path, text)| {
        let folder = if *path == LOCK { folder.to_path_buf() } else { folder.join("sdk") };
        (folder.join(path), *text)
    });
    for (path, text) in own.chain(sdk) {
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Refuses a name that a crate or a function cannot have.
fn check(name: &str) -> anyhow::Result<()> {
    let hint =
        "choose another name: lower-case letters, digits, `_` and `-`, a letter first, and no word of Rust's own";
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains(|c: char| c.is_ascii_uppercase());
    if plain && !TAKEN.contains(&name.replace('-', "_").as_str()) {
        return Ok(());
    }
    Err(Advice::new(format!("`{name}` cannot be the name of a crate and a function in Rust"), hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_a_crate_and_a_function() {
        assert!(["greet", "my-tool", "fs_read2"].iter().all(|name| check(name).is_ok()));
        assert!(["Greet", "2x", "_x", "fn", "proc-macro", "std"].iter().all(|name| check(name).is_err()));
    }

    #[test]
    fn the_sdk_stands_alone() {
        let text = |path: &str| SDK.iter().find(|(name, _)| *name == path).expect(path).1;
        for (path, text) in SDK.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
            assert!(text.contains("version = \"") && !text.contains("workspace"), "{path}: {text}");
        }
        assert!(
            text("guest-sdk/src/lib.rs").starts_with("//!") && text("wit/tool/tool.wit").contains("interface call")
        );
        let lock = text("Cargo.lock");
        assert!(lock.contains("name = \"toolcrib-guest\"") && lock.contains("name = \"serde_json\""), "{lock}");
        assert!(!lock.contains("name = \"starlark\""), "only what the SDK needs");
    }
}
