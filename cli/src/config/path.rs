//! Paths in settings files. The paths of a project, and of a file in its place, start at that file. The user's and the system's files hold for every folder:
//! a path in them is absolute or below the home folder, or names the current folder by a leading `.`.

use std::path::{Component, Path, PathBuf};

use directories::BaseDirs;

use super::layer::LayerKind;

/// Sources that are no paths.
const BUILTIN: &str = "builtin";
const ALL: &str = "*";

/// Rules of the paths of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathRule {
    /// Any path.
    Any,
    /// A value of an option that separates values by commas, or `*`.
    Folder,
    /// A source of tools: a path, `builtin` or a reference with `://`.
    Source,
}

/// Checks a path as a file of `kind` has it.
pub(super) fn check(rule: PathRule, kind: LayerKind, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(String::new());
    }
    if rule == PathRule::Folder && text.contains(',') {
        return Err(format!("`{text}`: a path with `,` cannot be granted or denied"));
    }
    let path = Path::new(text);
    let is_here = || matches!(path.components().next(), Some(Component::CurDir));
    match kind {
        _ if is_no_path(rule, text) || path.is_absolute() || below_home(text).is_some() || is_here() => Ok(()),
        LayerKind::Named | LayerKind::Project => Ok(()),
        _ => Err(format!(
            "`{text}`: this file holds for every folder: write an absolute path, `~/{text}`, or `./{text}` for the current \
             folder"
        )),
    }
}

/// Resolves a path that [`check`] accepts; `file` has it.
pub(super) fn resolve(rule: PathRule, kind: LayerKind, file: &Path, text: &str) -> PathBuf {
    if is_no_path(rule, text) {
        return text.into();
    }
    if let Some(rest) = below_home(text) {
        let home = BaseDirs::new().map(|user| user.home_dir().to_path_buf());
        return home.map_or_else(|| text.into(), |home| if rest.is_empty() { home } else { home.join(rest) });
    }
    let folder = file.parent().filter(|folder| ![Path::new(""), Path::new(".")].contains(folder));
    match (kind, folder) {
        // An absolute path takes the place of the folder.
        (LayerKind::Named | LayerKind::Project, Some(folder)) => folder.join(text),
        _ => text.into(),
    }
}

fn is_no_path(rule: PathRule, text: &str) -> bool {
    match rule {
        PathRule::Any => false,
        PathRule::Folder => text == ALL,
        PathRule::Source => text == BUILTIN || text.contains("://"),
    }
}

/// The part of a path below `~/`.
fn below_home(text: &str) -> Option<&str> {
    if text == "~" { Some("") } else { text.strip_prefix("~/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_every_folder_is_absolute_or_names_the_current_folder() {
        let user = |text| check(PathRule::Folder, LayerKind::User, text);
        for good in ["~", "~/notes", ".", "./notes", "*"] {
            assert_eq!(user(good), Ok(()), "{good}");
        }
        assert!(user("notes").is_err_and(|reason| reason.contains("`~/notes`, or `./notes`")));
        assert!(user("").is_err() && user("./a,b").is_err_and(|reason| reason.contains("with `,`")));
        assert_eq!(check(PathRule::Folder, LayerKind::Project, "notes"), Ok(()));
        assert_eq!(check(PathRule::Source, LayerKind::System, "builtin"), Ok(()));
    }

    #[test]
    fn a_path_of_a_project_starts_at_its_file() {
        let of = |kind, file: &str, text| resolve(PathRule::Any, kind, Path::new(file), text);
        assert_eq!(of(LayerKind::Project, "./toolcrib.toml", "docs"), Path::new("docs"));
        assert_eq!(of(LayerKind::Project, "other/x.toml", "docs"), Path::new("other/docs"));
        assert_eq!(of(LayerKind::User, "/home/me/x.toml", "./docs"), Path::new("./docs"));
        assert_eq!(resolve(PathRule::Folder, LayerKind::Project, Path::new("a/x.toml"), "*"), Path::new("*"));
    }
}
