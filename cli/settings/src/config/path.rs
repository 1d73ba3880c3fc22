//! Paths in settings files. The paths of a project, and of a file in its place, start at that file. The user's and the
//! system's files hold for every folder: a path in them is absolute or below the home folder, or names the current directory by
//! a leading `.`.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use toolcrib::flow::LabelPlace;
use toolcrib::policy::canonical;
use toolcrib_base::folders::home_folder;
use toolcrib_base::whole_file::folder_of;

use crate::selection::split as split_selection;

use super::layer_kind::LayerKind;

/// Sources that are no paths.
const BUILTIN: &str = "builtin";
/// Value of all paths.
pub(super) const ALL: &str = "*";

/// Rules of a key's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathRule {
    /// Any path.
    Any,
    /// A value of an option that separates values by commas, or `*`.
    Folder,
    /// The same, which may start with the tools that it is for.
    Granted,
    /// A source of tools: a path, `builtin` or a reference with `://`.
    Source,
    /// A place with a label: a path, or `host:`, `variable:` or `secret:` with a name.
    Place,
}

/// Checks a path as a file of `kind` has it.
pub(super) fn check(rule: PathRule, kind: LayerKind, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(String::new());
    }
    if matches!(rule, PathRule::Folder | PathRule::Granted) && text.contains(',') {
        return Err(format!("`{text}`: a path with `,` cannot be granted or denied"));
    }
    let (tools, text) = selected(rule, text);
    if text.is_empty() {
        return Err(format!("`{tools}`: a folder must follow the tools"));
    }
    if matches!(rule, PathRule::Folder | PathRule::Granted) && text != ALL && text.contains(['*', '?']) {
        return Err(format!("`{tools}{text}`: a path with `*` or `?` cannot be granted or denied: name its folder"));
    }
    if rule == PathRule::Place
        && let Err(error) = text.parse::<LabelPlace>()
    {
        return Err(error.to_string());
    }
    let path = Path::new(text);
    let is_here = || matches!(path.components().next(), Some(Component::CurDir));
    match kind {
        _ if is_no_path(rule, text) || path.is_absolute() || below_home(text).is_some() || is_here() => Ok(()),
        LayerKind::Set | LayerKind::Named | LayerKind::Project => Ok(()),
        _ => Err(format!(
            "`{tools}{text}`: this file holds for every folder: write an absolute path, `{tools}~/{text}`, or \
             `{tools}./{text}` for the current directory"
        )),
    }
}

/// Resolves a path that [`check`] accepts; `file` has it.
pub(super) fn resolve(rule: PathRule, kind: LayerKind, file: &Path, text: &str) -> PathBuf {
    if let (tools, text) = selected(rule, text)
        && !tools.is_empty()
    {
        let mut whole = selection(kind, file, tools);
        whole.push(resolve(PathRule::Folder, kind, file, text));
        return whole.into();
    }
    if is_no_path(rule, text) {
        return text.into();
    }
    if let Some(rest) = below_home(text) {
        return home_folder().map_or_else(|| text.into(), |home| if rest.is_empty() { home } else { home.join(rest) });
    }
    let folder = file.parent().filter(|folder| ![Path::new(""), Path::new(".")].contains(folder));
    match (kind, folder) {
        // An absolute path takes the place of the folder.
        (LayerKind::Named | LayerKind::Project, Some(folder)) => folder.join(text),
        _ => text.into(),
    }
}

/// Resolves the source in a tool selection, such as `@./tools.json:`, like a source in the same file. Names of
/// installed bundles stay as they are.
fn selection(kind: LayerKind, file: &Path, tools: &str) -> OsString {
    let Some(source) = tools.strip_prefix('@').and_then(|rest| rest.strip_suffix(':')) else { return tools.into() };
    let path = resolve(PathRule::Source, kind, file, source);
    let is_path = source.starts_with(['.', '/', '~']) || path.exists();
    if !is_path {
        return tools.into();
    }
    let mut whole = OsString::from("@");
    whole.push(path);
    whole.push(":");
    whole
}

/// Returns the real folder of a project's `file`.
pub(super) fn project(file: &Path) -> io::Result<PathBuf> {
    canonical(folder_of(file))
}

/// Resolves a path that a project's `file` grants, now and without links: a link may be another than when the file was
/// trusted, and its target is in the folder of the `project` or is not granted. The path is opened later without following a
/// link below that folder.
pub(super) fn confined(rule: PathRule, project: &Path, file: &Path, text: &str) -> Result<PathBuf, String> {
    if let (tools, text) = selected(rule, text)
        && !tools.is_empty()
    {
        let mut whole = selection(LayerKind::Project, file, tools);
        whole.push(confined(PathRule::Folder, project, file, text)?);
        return Ok(whole.into());
    }
    let unknown = |error: io::Error| format!("`{text}` cannot be resolved: {error}");
    let real = real(&resolve(PathRule::Any, LayerKind::Project, file, text)).map_err(unknown)?;
    match real.starts_with(project) {
        true => Ok(real),
        false => Err(format!(
            "`{text}` leads out of the project's folder: only an option, a file of your own or a file of `--config` grants it"
        )),
    }
}

/// Returns the path without links; missing parts at its end stay as they are.
fn real(path: &Path) -> io::Result<PathBuf> {
    match (canonical(path), path.parent(), path.file_name()) {
        // A link to nothing is not missing.
        (Err(error), Some(above), Some(name))
            if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() =>
        {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            Ok(real(above)?.join(name))
        }
        (real, ..) => real,
    }
}

/// Splits a value into the tools that it is for, which may be empty, and its path.
fn selected(rule: PathRule, text: &str) -> (&str, &str) {
    if rule == PathRule::Granted { split_selection(text) } else { ("", text) }
}

fn is_no_path(rule: PathRule, text: &str) -> bool {
    match rule {
        PathRule::Any => false,
        PathRule::Folder | PathRule::Granted => text == ALL,
        PathRule::Source => text == BUILTIN || text.contains("://"),
        PathRule::Place => !matches!(text.parse(), Ok(LabelPlace::Path(_))),
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
        let granted = |text| check(PathRule::Granted, LayerKind::User, text);
        assert_eq!(granted("fs_*:~/notes"), Ok(()));
        assert!(granted("fs_*:notes").is_err_and(|reason| reason.contains("`fs_*:~/notes`, or `fs_*:./notes`")));
        assert!(granted("fs_*:").is_err());
        assert_eq!(check(PathRule::Source, LayerKind::System, "builtin"), Ok(()));
    }

    #[test]
    fn a_grant_of_a_project_is_a_real_path_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(project.join("docs")).unwrap();
        let file = project.join("toolcrib.toml");
        let real = super::project(&file).unwrap();
        let confined = |text: &str| confined(PathRule::Granted, &real, &file, text);
        for (text, path) in [(".", ""), ("docs", "docs"), ("./docs/../docs", "docs"), ("docs/a/b", "docs/a/b")] {
            assert_eq!(confined(text), Ok(real.join(path)), "{text}");
        }
        assert_eq!(confined(project.join("docs").to_str().unwrap()), Ok(real.join("docs")));
        for text in ["..", "docs/../..", "~", "/", folder.path().to_str().unwrap()] {
            assert!(confined(text).is_err_and(|reason| reason.contains("leads out of the project's folder")), "{text}");
        }
        assert_eq!(confined("fs_*:docs"), Ok(PathBuf::from(format!("fs_*:{}", real.join("docs").display()))));
        assert!(confined("fs_*:..").is_err_and(|reason| reason.contains("leads out")));
        assert!(confined("missing/..").is_err_and(|reason| reason.contains("cannot be resolved")));
    }

    #[test]
    fn a_path_of_a_project_starts_at_its_file() {
        let of = |kind, file: &str, text| resolve(PathRule::Any, kind, Path::new(file), text);
        assert_eq!(of(LayerKind::Project, "./toolcrib.toml", "docs"), Path::new("docs"));
        assert_eq!(of(LayerKind::Project, "other/x.toml", "docs"), Path::new("other/docs"));
        assert_eq!(of(LayerKind::User, "/home/me/x.toml", "./docs"), Path::new("./docs"));
        let granted = |text| resolve(PathRule::Granted, LayerKind::Project, Path::new("other/x.toml"), text);
        assert_eq!(granted("fs_*:docs"), Path::new("fs_*:other/docs"));
        assert_eq!(granted("@builtin:docs"), Path::new("@builtin:other/docs"));
        assert_eq!(granted("@./src:docs"), Path::new("@other/./src:other/docs"), "like a source of the file");
        assert_eq!(granted("@acme/fetch:docs"), Path::new("@acme/fetch:other/docs"), "an installed bundle");
        assert_eq!(resolve(PathRule::Folder, LayerKind::Project, Path::new("a/x.toml"), "*"), Path::new("*"));
    }
}
