//! Hints about granted folders by the paths that tools see: the first folder is `/`, and of several, each has a name.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use toolcrib::policy::{Folder, Grant};
use toolcrib::tool::Access;
use toolcrib::{Outcome, Receipt, Runtime};
use toolcrib_base::render::{from_here, listed, one_line};

use super::denial::is_path;

/// Suggestion of another path in the message of a tool.
const SUGGESTION: &str = "did you mean";
/// Parts of argument names that are paths.
const PATH_WORDS: [&str; 4] = ["path", "file", "dir", "folder"];
/// Maximum number of arguments that are looked at.
const MAX_ARGUMENTS: usize = 64;

/// Returns a hint about the granted folders if a call failed that may have used a path of the host: a path was refused, or the
/// message names a path of the arguments.
pub fn folders_hint(grant: &Grant, receipt: &Receipt, arguments: &str, message: &str) -> Option<String> {
    let folders = grant.folders();
    if !matches!(receipt.outcome, Outcome::Failed | Outcome::Denied) || folders.is_empty() {
        return None;
    }
    let arguments = serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let fields = arguments.as_object().into_iter().flatten().take(MAX_ARGUMENTS);
    let texts = fields.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let mut paths =
        texts.filter(|(name, text)| may_be_path(name, text) && names_path(message, text)).map(|(_, text)| text);
    let is_meant = match folders {
        // The tool may have told the path itself.
        [_] if message.contains(SUGGESTION) => false,
        [only] => paths.any(|path| names_host(path, &only.host)),
        _ => is_path_denied(receipt) || paths.next().is_some(),
    };
    is_meant.then(|| names(folders))
}

/// Returns `true` for an argument that may be a path, by its name or by a separator or an extension in its text.
fn may_be_path(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_extension = || Path::new(text).extension().is_some();
    !text.is_empty()
        && (PATH_WORDS.iter().any(|word| name.contains(word)) || text.contains(['/', '\\']) || has_extension())
}

/// Returns `true` if a message has a path that is no part of a longer word.
fn names_path(message: &str, path: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    message.match_indices(path).any(|(start, path)| {
        let (before, after) = (&message[..start], &message[start + path.len()..]);
        !before.ends_with(is_inside) && !after.starts_with(is_inside)
    })
}

/// Returns `true` if a path begins with the folder of the host, which the tool does not see.
fn names_host(path: &str, host: &Path) -> bool {
    let first = Path::new(path.trim_start_matches("./")).components().next();
    let is_name = first.is_some_and(|first| Some(first.as_os_str()) == host.file_name());
    is_name || Path::new(path).is_absolute() && host.components().count() > 1 && Path::new(path).starts_with(host)
}

fn is_path_denied(receipt: &Receipt) -> bool {
    receipt.denied.iter().any(|denial| is_path(&denial.capability))
}

/// Names folders by the paths that a tool sees.
fn names(folders: &[Folder]) -> String {
    let name = |folder: &Folder| {
        let guest: Vec<String> = folder.guest.iter().map(|path| format!("`{}`", one_line(path))).collect();
        let host = one_line(&from_here(&folder.host).to_string_lossy());
        let access = if folder.access == Access::Write { "read and write" } else { "read only" };
        let files: Vec<String> = folder.files().map(|file| format!("`{}`", one_line(file))).collect();
        let only = if files.is_empty() { String::new() } else { format!(", only {}", files.join(", ")) };
        format!("{} is `{host}` ({access}{only})", guest.join(" or "))
    };
    let named: Vec<String> = folders.iter().map(name).collect();
    format!("paths as the tool sees them: {}", listed(&named))
}

/// Hints about the folders of tools with several, each text once.
#[derive(Debug, Clone, Default)]
pub struct FolderHints(BTreeMap<String, String>);

impl FolderHints {
    /// Collects the folders of a runtime's tools.
    pub fn of(runtime: &Runtime) -> Self {
        let tools = runtime.tools().filter_map(|tool| Some((tool, runtime.grant(&tool.name)?.folders())));
        let several = tools.filter(|(_, folders)| folders.len() > 1);
        Self(several.map(|(tool, folders)| (tool.name.clone(), names(folders))).collect())
    }

    /// Returns the hint about a call for which a path was refused.
    pub fn take(&mut self, receipt: &Receipt) -> Option<String> {
        let text = self.0.get(&receipt.tool).filter(|_| is_path_denied(receipt))?.clone();
        self.0.retain(|_, other| *other != text);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_is_no_path_or_a_part_of_a_word_is_not_named() {
        for (name, text) in [("path", "notes"), ("inputFile", "a"), ("to", "a/b"), ("to", "a.md"), ("to", "..\\a")] {
            assert!(may_be_path(name, text), "{name} {text}");
        }
        for (name, text) in [("mode", "a"), ("path", ""), ("unit", "km")] {
            assert!(!may_be_path(name, text), "{name} {text}");
        }
        for message in ["no file `a`", "a: not found", "/docs/a", "cannot open a"] {
            assert!(names_path(message, "a"), "{message}");
        }
        for message in ["cannot open data", "mode-a is unknown", "no such file", ""] {
            assert!(!names_path(message, "a"), "{message}");
        }
    }

    #[test]
    fn a_path_of_the_host_begins_with_the_folder_or_its_name() {
        let host = Path::new("/srv/desk");
        for path in ["desk/a.md", "./desk/a.md", "desk", "/srv/desk/a.md"] {
            assert!(names_host(path, host), "{path}");
        }
        for path in ["a.md", "/a.md", "/srv/other", "desktop/a.md", "../desk"] {
            assert!(!names_host(path, host), "{path}");
        }
    }
}
