//! Bundle sources: references `oci://…`, recipes `recipe:…`, addresses of servers `https://…`, and paths of bundle files.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib_registry::Reference;

use crate::recipes::{self, RecipeSource};
use crate::registries::SCHEME;
use crate::servers::ServerSource;

/// Source of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleSource {
    /// Bundle in a registry.
    Registry(Box<Reference>),
    /// Recipe for a bundle.
    Recipe(RecipeSource),
    /// Tools of a remote server.
    Server(Box<ServerSource>),
    /// Bundle file, as an absolute path.
    File(PathBuf),
}

impl BundleSource {
    /// Parses a source. A path is relative to `folder`.
    ///
    /// # Errors
    ///
    /// The text begins like a reference or an address and is none.
    pub fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        if ServerSource::is_named(text) {
            return Ok(Self::Server(Box::new(ServerSource::parse(text)?)));
        }
        if text.starts_with(SCHEME) {
            let reference = text.parse::<Reference>().with_context(|| format!("`{text}` is not a reference"))?;
            return Ok(Self::Registry(Box::new(reference)));
        }
        let absolute = |path: &str| folder.join(path.strip_prefix("./").unwrap_or(path));
        Ok(match text.strip_prefix(recipes::SCHEME) {
            Some(path) if path.ends_with(recipes::EXTENSION) => Self::Recipe(RecipeSource::File(absolute(path))),
            Some(name) => Self::Recipe(RecipeSource::Shipped(name.to_owned())),
            None => Self::File(absolute(text)),
        })
    }

    /// Parses a source that a user names. The name of a recipe and a file with one need no `recipe:`. As for a push, a reference to
    /// a tag or a digest needs no `oci://`. Both are so unless there is a file of this name.
    ///
    /// # Errors
    ///
    /// The errors of [`BundleSource::parse`].
    pub fn named(text: &str, folder: &Path) -> anyhow::Result<Self> {
        let is_missing = || folder.join(text).symlink_metadata().is_err();
        if ServerSource::is_named(text) {
            return Self::parse(text, folder);
        }
        match text.parse::<Reference>() {
            Ok(reference) if (reference.tag().is_some() || reference.digest().is_some()) && is_missing() => {
                Ok(Self::Registry(Box::new(reference)))
            }
            _ if text.ends_with(recipes::EXTENSION) => Self::parse(&format!("{}{text}", recipes::SCHEME), folder),
            // A folder is no bundle.
            _ if !folder.join(text).is_file() && recipes::find(text).is_some() => {
                Ok(Self::Recipe(RecipeSource::Shipped(text.to_owned())))
            }
            _ => Self::parse(text, folder),
        }
    }

    /// Formats the source for a lock in `folder`: a path below the folder is relative to it.
    pub fn text(&self, folder: &Path) -> String {
        let relative = |path: &Path| match path.strip_prefix(folder) {
            Ok(below) => format!("./{}", below.display()),
            Err(_) => path.display().to_string(),
        };
        match self {
            Self::Registry(reference) => reference.to_string(),
            Self::Recipe(RecipeSource::Shipped(name)) => format!("{}{name}", recipes::SCHEME),
            Self::Recipe(RecipeSource::File(path)) => format!("{}{}", recipes::SCHEME, relative(path)),
            Self::Server(server) => server.to_string(),
            Self::File(path) => relative(path),
        }
    }

    /// Version that the source names by its tag.
    pub(crate) fn tag(&self) -> Option<String> {
        match self {
            Self::Registry(reference) => reference.tag().map(|tag| tag.as_str().to_owned()),
            Self::Recipe(_) | Self::Server(_) | Self::File(_) => None,
        }
    }

    /// Returns the last part of the path without its extension, in characters that a name may have.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            Self::Registry(reference) => reference.repository().path().to_owned(),
            Self::Recipe(RecipeSource::Shipped(name)) => name.clone(),
            Self::Server(server) => server.name(),
            Self::Recipe(RecipeSource::File(path)) | Self::File(path) => {
                path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase()
            }
        };
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '-' }).collect()
    }

    /// Names exactly one content, so that no tag is resolved.
    pub fn pinned(&self, digest: &str) -> anyhow::Result<Self> {
        Ok(match self {
            Self::Registry(reference) => {
                let digest = digest.parse().with_context(|| format!("`{digest}` is not a digest"))?;
                Self::Registry(Box::new(reference.as_ref().clone().with_digest(digest)))
            }
            // A server has no content but the present one.
            Self::Server(server) => Self::Server(server.clone()),
            Self::Recipe(recipe) => Self::Recipe(recipe.clone()),
            Self::File(path) => Self::File(path.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_keeps_its_text() {
        let folder = Path::new("/home/ada/project");
        for (text, kept, name) in [
            ("oci://registry.example/acme/weather:1.2", "oci://registry.example/acme/weather:1.2", "acme/weather"),
            ("./dist/Weather 1.tar", "./dist/Weather 1.tar", "weather-1"),
            ("weather.tar", "./weather.tar", "weather"),
            ("/elsewhere/weather.tar", "/elsewhere/weather.tar", "weather"),
            ("recipe:ripgrep", "recipe:ripgrep", "ripgrep"),
            ("recipe:./own.recipe.json", "recipe:./own.recipe.json", "own.recipe"),
        ] {
            let source = BundleSource::parse(text, folder).unwrap();
            assert_eq!((source.text(folder).as_str(), source.name().as_str()), (kept, name));
            assert_eq!(BundleSource::parse(&source.text(folder), folder).unwrap(), source);
        }
        assert!(BundleSource::parse("oci://", folder).is_err());
    }

    #[test]
    fn a_named_reference_needs_no_scheme_unless_a_file_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["registry.example/acme/weather:1.2", "localhost:5000/weather:1"] {
            let reference = BundleSource::named(text, folder.path()).unwrap();
            assert_eq!(reference, BundleSource::parse(&format!("oci://{text}"), folder.path()).unwrap());
        }
        for path in ["dist.d/weather.tar", "./a.b:1", "weather:1", "registry.example/acme/weather"] {
            let source = BundleSource::named(path, folder.path()).unwrap();
            assert!(matches!(source, BundleSource::File(_)), "{path}");
        }
        let recipe = |text| BundleSource::named(text, folder.path()).unwrap().text(folder.path());
        assert_eq!(recipe("ripgrep"), "recipe:ripgrep");
        assert_eq!(recipe("own.recipe.json"), "recipe:./own.recipe.json");
        std::fs::write(folder.path().join("ripgrep"), "").unwrap();
        assert_eq!(recipe("ripgrep"), "./ripgrep");
        std::fs::create_dir(folder.path().join("dist.d")).unwrap();
        std::fs::write(folder.path().join("dist.d/weather:1"), "").unwrap();
        assert!(matches!(BundleSource::named("dist.d/weather:1", folder.path()).unwrap(), BundleSource::File(_)));
    }

    #[test]
    fn a_pinned_reference_has_the_digest_and_its_tag() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let source = BundleSource::parse("oci://registry.example/a:1", Path::new("/")).unwrap();
        assert_eq!(
            source.pinned(&digest).unwrap().text(Path::new("/")),
            format!("oci://registry.example/a:1@{digest}")
        );
        assert_eq!(source.tag().as_deref(), Some("1"));
    }
}
