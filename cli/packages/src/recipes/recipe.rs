//! Recipe: a package, the programs in it, and the tools that they are.

use std::fmt;
use std::path::{Component, Path};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;
use toolcrib_bundle::{BundleBuilder, Metadata};

/// Maximum number of programs of a recipe.
const MAX_PROGRAMS: usize = 64;
/// Maximum length of a name or a version in bytes.
const MAX_NAME: usize = 128;

/// Recipe for a bundle from a published package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the bundle.
    pub name: String,
    /// Version of the bundle: that of the programs, and `+2` and so on if only the recipe changed.
    pub version: String,
    /// Purpose of the tools, in a line.
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
        let Package { registry, name, version } = &self.package;
        ensure!(
            is_name(name, *registry),
            "package.name must be the name of a package of {}, found {name:?}",
            registry.as_str()
        );
        ensure!(is_version(version), "package.version must be a version such as 1.2.3, found {version:?}");
        ensure!(!self.programs.is_empty(), "programs is empty");
        ensure!(self.programs.len() <= MAX_PROGRAMS, "programs has more than the {MAX_PROGRAMS} items allowed");
        ensure!(!self.tools.is_empty(), "tools is empty");
        for (index, program) in self.programs.iter().enumerate() {
            let at = format!("programs[{index}]");
            let is_file = is_name(&program.name, Registry::Pypi);
            ensure!(is_file, "{at}.name must be the name of a file, found {:?}", program.name);
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

/// Returns `true` for the name of a package: nothing that its package manager would take for a path, an address or an option.
fn is_name(name: &str, registry: Registry) -> bool {
    let is_word = |word: &str| {
        let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_inner = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        is_edge(word.chars().next()) && is_edge(word.chars().next_back()) && word.chars().all(is_inner)
    };
    let is_scoped = |name: &str| {
        let parts = name.strip_prefix('@').and_then(|name| name.split_once('/'));
        parts.is_some_and(|(scope, name)| is_word(scope) && is_word(name))
    };
    name.len() <= MAX_NAME && (is_word(name) || registry == Registry::Npm && is_scoped(name))
}

/// Returns `true` for a version: it begins with a digit, so that it is neither a tag nor an address.
fn is_version(version: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    version.len() <= MAX_NAME && version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(is_inner)
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
            ("/package/name", json!("a/b")),
            ("/package/name", json!("/a")),
            ("/package/name", json!("./a")),
            ("/package/name", json!("@a")),
            ("/package/name", json!("@a/b/c")),
            ("/package/name", json!("a@b")),
            ("/package/name", json!("..")),
            ("/package/version", json!("1 2")),
            ("/package/version", json!("")),
            ("/package/version", json!("latest")),
            ("/package/version", json!("user/repo")),
            ("/package/version", json!("/x.tgz")),
            ("/package/version", json!("1@2")),
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
        let scoped = text(&digest, |recipe| recipe["package"]["registry"] = json!("pypi"));
        assert!(Recipe::parse(&scoped).is_err(), "PyPI has no scopes");
    }
}
