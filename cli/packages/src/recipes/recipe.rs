//! Recipe: a package, the programs in it, and the tools that they are.

use std::fmt;
use std::path::{Component, Path};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;
use toolcrib_bundle::{BundleBuilder, Metadata};

/// Maximum number of programs of a recipe.
const MAX_PROGRAMS: usize = 64;
/// Characters of names and versions besides letters and digits: none has a meaning for a shell or a package manager.
const PUNCTUATION: &str = "@/._+-";

/// Recipe for a bundle from a published package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the bundle.
    pub name: String,
    /// Version of the bundle: that of the programs, and `+2` and so on if only the recipe changed.
    pub version: String,
    /// What the tools do, in a line.
    pub description: String,
    /// Licences of the programs, as an SPDX expression.
    pub licenses: String,
    /// Published package.
    pub package: Package,
    /// Programs in the package.
    pub programs: Vec<Program>,
    /// Entries of a `tools.json`.
    pub tools: Vec<Value>,
}

/// Published package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Registry of the package.
    pub registry: Registry,
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
}

/// Registry of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// npm.
    Npm,
    /// PyPI.
    Pypi,
}

/// Program in a package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the program: `./tools/bin/NAME` in the tools.
    pub name: String,
    /// Path of its file in the package.
    pub file: String,
    /// SHA-256 of the program, as `sha256:HEX`.
    pub digest: String,
    /// Encoding of the program in the file; none for its bytes.
    #[serde(default)]
    pub encoding: Option<Encoding>,
}

/// Encoding of a program in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// String literal in a JavaScript file: Z85 of Brotli.
    Z85Brotli,
}

impl Registry {
    /// Returns the name of the registry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.registry.as_str(), self.name, self.version)
    }
}

impl Recipe {
    /// Parses a recipe.
    ///
    /// # Errors
    ///
    /// The text is no recipe, or a name in it is not allowed.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let recipe: Self = serde_json::from_str(text)?;
        recipe.check()?;
        Ok(recipe)
    }

    fn check(&self) -> anyhow::Result<()> {
        let Package { name, version, .. } = &self.package;
        check_word("package.name", name)?;
        check_word("package.version", version)?;
        ensure!(!self.programs.is_empty(), "programs is empty");
        ensure!(self.programs.len() <= MAX_PROGRAMS, "programs has more than the {MAX_PROGRAMS} items allowed");
        ensure!(!self.tools.is_empty(), "tools is empty");
        for (index, program) in self.programs.iter().enumerate() {
            let at = format!("programs[{index}]");
            check_word(&format!("{at}.name"), &program.name)?;
            ensure!(!program.name.contains('/'), "{at}.name must be the name of a file");
            let hex = program.digest.strip_prefix("sha256:").filter(|hex| hex.len() == 64);
            let is_digest = hex.is_some_and(|hex| hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
            ensure!(is_digest, "{at}.digest must be `sha256:` and 64 hexadecimal digits");
            let is_inside = Path::new(&program.file).components().all(|part| matches!(part, Component::Normal(_)));
            ensure!(is_inside && !program.file.is_empty(), "{at}.file must be a path in the package");
        }
        let metadata = Metadata::new(&self.name, &self.version);
        BundleBuilder::new(metadata).map(drop).context("name or version")
    }
}

/// Checks a text that becomes an argument of a package manager.
fn check_word(field: &str, text: &str) -> anyhow::Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c);
    let is_word = text.chars().all(is_allowed) && !text.starts_with('-') && !text.is_empty() && text.len() <= 128;
    ensure!(is_word && !text.contains(".."), "{field} must be letters, digits and `{PUNCTUATION}`, found {text:?}");
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Creates the text of a recipe with one program.
    pub(crate) fn text(digest: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut recipe = json!({
            "name": "area", "version": "1.2.3", "description": "Compute areas", "licenses": "MIT",
            "package": { "registry": "npm", "name": "@example/area", "version": "1.2.3" },
            "programs": [{ "name": "area", "file": "dist/area.wasm", "digest": digest }],
            "tools": [{ "name": "area", "command": ["./tools/bin/area"], "argv": ["{width}"], "output": "text" }],
        });
        change(&mut recipe);
        recipe.to_string()
    }

    #[test]
    fn what_could_lead_a_package_manager_elsewhere_is_refused() {
        let digest = format!("sha256:{}", "0".repeat(64));
        assert!(Recipe::parse(&text(&digest, |_| ())).is_ok());
        for (pointer, value) in [
            ("/package/name", json!("--registry=http://x")),
            ("/package/name", json!("a;b")),
            ("/package/name", json!("a/../b")),
            ("/package/version", json!("1 2")),
            ("/package/version", json!("")),
            ("/package/registry", json!("git")),
            ("/programs/0/file", json!("../area.wasm")),
            ("/programs/0/file", json!("/area.wasm")),
            ("/programs/0/file", json!("")),
            ("/programs/0/name", json!("bin/area")),
            ("/programs/0/digest", json!("sha256:0")),
            ("/programs/0/encoding", json!("zip")),
            ("/programs", json!([])),
            ("/tools", json!([])),
            ("/name", json!("../x")),
        ] {
            let changed =
                text(&digest, |recipe| *recipe.pointer_mut(pointer).unwrap_or(&mut Value::Null) = value.clone());
            let changed = match pointer {
                "/programs/0/encoding" => text(&digest, |recipe| recipe["programs"][0]["encoding"] = value.clone()),
                _ => changed,
            };
            assert!(Recipe::parse(&changed).is_err(), "{pointer} {value}");
        }
        assert!(Recipe::parse(&text(&digest, |recipe| recipe["more"] = json!(1))).is_err());
    }
}
