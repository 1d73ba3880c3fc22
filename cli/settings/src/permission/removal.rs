//! Files that a call would remove or move, as its arguments name them: for the question about the call. A tool can do something
//! else, so the arguments are shown too.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use serde_json::{Map, Value};
use toolcrib::policy::ApprovalRequest;
use toolcrib_base::render::counted;

use super::difference::{MAX_COMPARED, PATHS, granted_folder};

/// Words in the name of a tool that removes, and of one that moves.
const REMOVES: [&str; 4] = ["rm", "remove", "delete", "unlink"];
const MOVES: [&str; 3] = ["move", "rename", "mv"];
/// Names of two arguments: the old path, and the new one.
const BOTH: [(&str, &str); 5] =
    [("from", "to"), ("source", "destination"), ("src", "dst"), ("old_path", "new_path"), ("oldPath", "newPath")];
/// Maximum number of entries that are counted, and maximum time for that.
const MAX_ENTRIES: usize = 10_000;
const MAX_TIME: Duration = Duration::from_millis(100);
/// Maximum characters of a path.
const MAX_SHOWN: usize = 60;
/// Maximum number of removed paths that are shown.
const MAX_LISTED: usize = 20;

/// Entries below a folder.
#[derive(Default)]
struct Count {
    files: usize,
    folders: usize,
    bytes: u64,
    is_partial: bool,
}

/// Returns the files that a call would remove or move.
pub(super) fn of(request: &ApprovalRequest<'_>) -> Option<String> {
    // A stage can show other files than the folder has.
    let is_bounded = request.stage.is_none() && request.arguments.len() <= MAX_COMPARED;
    is_bounded.then(|| described(&request.tool.name, request.arguments, request.granted))?
}

fn described(tool: &str, arguments: &str, granted: &[String]) -> Option<String> {
    let name = tool.to_ascii_lowercase();
    let has = |words: &[&str]| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word));
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let until = Instant::now() + MAX_TIME;
    let at = |path: &str| {
        // The root is a folder of the tool, whatever the host has there.
        let folder = granted_folder(granted, if path == "/" { "." } else { path })?;
        let path = path.trim_start_matches('/');
        Some(entry(&folder, if path.is_empty() { "." } else { path }, until))
    };
    if has(&REMOVES) {
        let paths = match PATHS.iter().find_map(|name| arguments.get(*name))? {
            Value::String(path) => vec![path.as_str()],
            Value::Array(paths) => paths.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let line = |path: &&str| {
            Some(match at(path)? {
                Some(there) => format!("- {}\n  {there}", shown(path)),
                None => format!("{}\n  does not exist", shown(path)),
            })
        };
        let mut lines: Vec<String> = paths.iter().take(MAX_LISTED).map(line).collect::<Option<_>>()?;
        if let Some(more @ 1..) = paths.len().checked_sub(MAX_LISTED) {
            lines.push(format!("… {}", counted(more, "more path")));
        }
        return Some(lines.join("\n")).filter(|lines| !lines.is_empty());
    }
    let (from, to) = BOTH.iter().find_map(|(from, to)| Some((text(from)?, text(to)?))).filter(|_| has(&MOVES))?;
    let there = at(from)?.unwrap_or_else(|| "does not exist".to_owned());
    let moved = format!("{}\n  {there}\n→ {}", shown(from), shown(to));
    Some(match at(to)? {
        Some(there) => format!("{moved}\n  {there}, is in its place now"),
        None => moved,
    })
}

/// Formats a path without empty parts, in quotes unless it is plain. Of a long one, the beginning and the end are left.
fn shown(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let path = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
    let length = path.chars().count();
    let path = match length > MAX_SHOWN {
        false => path,
        true => {
            path.chars().take(MAX_SHOWN / 2).chain(['…']).chain(path.chars().skip(length - MAX_SHOWN / 2)).collect()
        }
    };
    let is_plain = |c: char| c.is_alphanumeric() || "._-/~+@=:,#%…".contains(c);
    if path.chars().all(is_plain) { path } else { format!("{path:?}") }
}

/// Describes an entry without following a link at its end; `None` if nothing is there.
fn entry(folder: &Dir, path: &str, until: Instant) -> Option<String> {
    let about = match folder.symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => return Some("it cannot be read".to_owned()),
        Ok(about) => about,
    };
    if about.is_symlink() {
        return Some("a link".to_owned());
    }
    if !about.is_dir() {
        return Some(counted(usize::try_from(about.len()).unwrap_or(usize::MAX), "byte"));
    }
    let mut count = Count::default();
    count.add(folder, Path::new(path), until);
    let Count { files, folders, bytes, is_partial } = count;
    let least = if is_partial { "at least " } else { "" };
    let bytes = counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    Some(format!("a folder with {least}{}, {} and {bytes}", counted(files, "file"), counted(folders, "folder")))
}

impl Count {
    /// Counts the entries below a folder, unless there are too many.
    fn add(&mut self, root: &Dir, path: &Path, until: Instant) {
        let mut waiting = vec![path.to_path_buf()];
        while let Some(path) = waiting.pop() {
            let Ok(entries) = root.read_dir(&path) else {
                self.is_partial = true;
                continue;
            };
            for entry in entries {
                if self.files + self.folders >= MAX_ENTRIES || Instant::now() >= until {
                    self.is_partial = true;
                    return;
                }
                let Ok((about, name)) = entry.and_then(|entry| Ok((entry.metadata()?, entry.file_name()))) else {
                    self.is_partial = true;
                    continue;
                };
                if about.is_dir() {
                    self.folders += 1;
                    waiting.push(path.join(name));
                } else {
                    self.files += 1;
                    self.bytes += about.len();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn removed_and_moved_files_are_shown_with_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.md"), "four").unwrap();
        fs::write(at("b.md"), "b").unwrap();
        fs::create_dir_all(at("dir/sub")).unwrap();
        fs::write(at("dir/sub/x"), "12").unwrap();
        let granted = [format!("write:{}", folder.path().display())];
        let of = |tool: &str, arguments: &str| described(tool, arguments, &granted);
        assert_eq!(of("fs_rm", r#"{"path":"a.md"}"#).as_deref(), Some("- a.md\n  4 bytes"));
        let whole = "- dir\n  a folder with 1 file, 1 folder and 2 bytes";
        for path in ["/dir", "dir/", "././/dir"] {
            assert_eq!(of("delete-dir", &format!(r#"{{"path":"{path}"}}"#)).as_deref(), Some(whole), "{path}");
        }
        for root in [".", "/"] {
            let text = of("fs_rm", &format!(r#"{{"path":"{root}"}}"#)).unwrap();
            assert!(text.starts_with("- .\n  a folder with 3 files"), "{text}");
        }
        assert_eq!(of("fs_rm", r#"{"path":"none"}"#).as_deref(), Some("none\n  does not exist"));
        assert_eq!(of("fs_move", r#"{"from":"a.md","to":"c.md"}"#).as_deref(), Some("a.md\n  4 bytes\n→ c.md"));
        assert_eq!(
            of("rename", r#"{"source":"a.md","destination":"b.md"}"#).as_deref(),
            Some("a.md\n  4 bytes\n→ b.md\n  1 byte, is in its place now")
        );
        let forged = of("fs_rm", r#"{"path":"a.md → /trash/a.md\n(moved)"}"#).unwrap();
        assert_eq!(forged, "\"a.md → /trash/a.md\\n(moved)\"\n  does not exist");
        let long = of("fs_rm", &format!(r#"{{"path":"{}big"}}"#, "x/".repeat(200))).unwrap();
        assert!(long.contains("x/big\n"), "{long}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc", at("link")).unwrap();
            assert_eq!(of("fs_rm", r#"{"path":"link"}"#).as_deref(), Some("- link\n  a link"));
            assert_eq!(of("fs_rm", r#"{"path":"link/passwd"}"#).as_deref(), Some("- link/passwd\n  it cannot be read"));
        }
        assert_eq!(of("fs_rm", r#"{"path":"../x"}"#).as_deref(), Some("- ../x\n  it cannot be read"));
        let two = "- a.md\n  4 bytes\nnone\n  does not exist";
        assert_eq!(of("fs_rm", r#"{"path":["a.md","none"]}"#).as_deref(), Some(two));
        let many = of("fs_rm", &format!(r#"{{"path":[{}"b.md"]}}"#, r#""a.md","#.repeat(MAX_LISTED))).unwrap();
        assert!(many.ends_with("\n… 1 more path") && many.lines().count() == 2 * MAX_LISTED + 1, "{many}");
        for none in [r#"{"path":[]}"#, r#"{"path":["a.md",1]}"#, r#"{"path":1}"#] {
            assert_eq!(of("fs_rm", none), None, "{none}");
        }
        for (tool, arguments) in [("fs_read", r#"{"path":"a.md"}"#), ("format", r#"{"path":"a.md"}"#), ("fs_rm", "[]")]
        {
            assert_eq!(of(tool, arguments), None, "{tool}");
        }
    }

    #[test]
    fn counting_ends_at_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        (0..=MAX_ENTRIES).for_each(|number| fs::create_dir(folder.path().join(number.to_string())).unwrap());
        let granted = [format!("write:{}", folder.path().display())];
        let text = described("fs_rm", r#"{"path":"."}"#, &granted).unwrap();
        assert!(text.contains("at least"), "{text}");
    }
}
