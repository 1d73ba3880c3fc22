//! The part of the system message that the host adds to a run: the folders and hosts that tools can access, by the
//! paths that calls use, and a trusted project's instructions. It describes each run anew and is never saved.

use std::fmt::Write;
use std::path::Path;

use toolcrib::tool::Access;
use toolcrib::{Runtime, Session};
use toolcrib_base::render::{counted, one_line, shortened};

use super::api::model_names;

/// Maximum number of tool groups that access different folders.
const MAX_GROUPS: usize = 8;
/// Maximum number of folders, hosts and names in a group.
const MAX_LISTED: usize = 16;
/// Maximum length of a name or path, in characters.
const MAX_NAME: usize = 200;

/// A folder that a tool can access.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SharedFolder {
    /// Paths in calls.
    guest: Vec<String>,
    /// Name for the user: never an absolute path, which the server of the model does not need.
    host: String,
    access: Access,
}

/// Tools that access the same folders.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    tools: Vec<String>,
    folders: Vec<SharedFolder>,
}

/// Formats the access of a session's tools, and the `instructions` of the project; `None` if there is nothing to say.
pub fn briefing(runtime: &Runtime, session: &Session, instructions: Option<&str>) -> Option<String> {
    let mut groups = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    let names = model_names(session);
    let shown = session.tools().into_iter().map(|tool| (tool, names.get(&tool.name)));
    // Tools that the model calls in programs alone.
    let hidden = runtime.tools().filter(|tool| !runtime.shows(tool)).map(|tool| (tool, "run_code"));
    for (tool, name) in shown.chain(hidden) {
        let Some(grant) = runtime.grant(&tool.name) else { continue };
        let folder = |folder: &toolcrib::policy::Folder| SharedFolder {
            guest: folder.guest.clone(),
            host: name_of(&folder.host) + &only_files(folder),
            access: folder.access,
        };
        add(&mut groups, name, grant.folders().iter().map(folder).collect());
        let reached = grant.network().destinations().iter().map(ToString::to_string);
        let new: Vec<String> = reached.filter(|host| !hosts.contains(host)).collect();
        hosts.extend(new);
    }
    let instructions =
        instructions.map(|text| format!("Instructions of the project (AGENTS.md):\n{}", text.trim_end()));
    let sections: Vec<String> = [folders(&groups), network(&hosts), instructions].into_iter().flatten().collect();
    (!sections.is_empty()).then(|| sections.join("\n\n"))
}

/// Names the files of a folder if these alone are granted.
fn only_files(folder: &toolcrib::policy::Folder) -> String {
    let files: Vec<&str> = folder.files().collect();
    if files.is_empty() { String::new() } else { format!(" (only {})", files.join(", ")) }
}

/// Returns the name of a folder for the user: relative to the current directory if it lies below it, else its last name.
fn name_of(host: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    match host.strip_prefix(&here) {
        Ok(below) if below.as_os_str().is_empty() => "the current directory".to_owned(),
        Ok(below) => quoted(&below.to_string_lossy()),
        Err(_) => host.file_name().map_or("a folder".to_owned(), |name| quoted(&name.to_string_lossy())),
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", shortened(&one_line(text), MAX_NAME).replace('`', "'"))
}

/// Adds a tool to the group with its folders. The access of a group is the most of its tools.
fn add(groups: &mut Vec<Group>, tool: &str, folders: Vec<SharedFolder>) {
    if folders.is_empty() {
        return;
    }
    let same = |group: &&mut Group| {
        let pairs = group.folders.iter().zip(&folders);
        group.folders.len() == folders.len()
            && pairs.clone().all(|(one, other)| one.guest == other.guest && one.host == other.host)
    };
    match groups.iter_mut().find(same) {
        Some(group) => {
            if !group.tools.iter().any(|known| known == tool) {
                group.tools.push(tool.to_owned());
            }
            for (known, folder) in group.folders.iter_mut().zip(folders) {
                known.access = known.access.max(folder.access);
            }
        }
        None => groups.push(Group { tools: vec![tool.to_owned()], folders }),
    }
}

fn folders(groups: &[Group]) -> Option<String> {
    let is_one = groups.len() == 1;
    let mut text = String::new();
    for Group { tools, folders } in groups.iter().take(MAX_GROUPS) {
        let which = if is_one { "Tools".to_owned() } else { listed(tools.iter().map(|name| quoted(name))) };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{which} can access these folders of the user, by these paths in calls:");
        for SharedFolder { guest, host, access } in folders.iter().take(MAX_LISTED) {
            let paths = guest.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" or ");
            let access = if *access == Access::Write { "to read and write" } else { "to read only" };
            let _ = writeln!(text, "- {paths}: {host}, {access}");
        }
        if let Some(more @ 1..) = folders.len().checked_sub(MAX_LISTED) {
            let _ = writeln!(text, "- and {more} more");
        }
    }
    if let Some(more @ 1..) = groups.len().checked_sub(MAX_GROUPS) {
        let _ = writeln!(text, "{} of tools can access other folders.", counted(more, "other group"));
    }
    let closing = "Write paths in calls in this form, such as `/notes.md` for the file `notes.md` in the folder at `/`. No other \
                   file of the user can be reached.";
    (!groups.is_empty()).then(|| text + closing)
}

fn network(hosts: &[String]) -> Option<String> {
    let hosts = (!hosts.is_empty()).then(|| listed(hosts.iter().map(|host| quoted(host))))?;
    Some(format!("Tools can send requests to {hosts}, and to no other host."))
}

/// Joins names, at most [`MAX_LISTED`].
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let shown = names.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(guest: &[&str], host: &str, access: Access) -> SharedFolder {
        let guest = guest.iter().map(|path| (*path).to_owned()).collect();
        SharedFolder { guest, host: host.to_owned(), access }
    }

    #[test]
    fn tools_with_the_same_folders_share_a_paragraph() {
        let mut groups = Vec::new();
        let both =
            |access| vec![folder(&["/", "/desk"], "`work/desk`", access), folder(&["/docs"], "`docs`", Access::Read)];
        add(&mut groups, "read", both(Access::Read));
        add(&mut groups, "write", both(Access::Write));
        add(&mut groups, "none", Vec::new());
        let one = folders(&groups).expect("a text");
        assert!(one.starts_with("Tools can access these folders of the user, by these paths in calls:\n"), "{one}");
        assert!(
            one.contains("- `/` or `/desk`: `work/desk`, to read and write\n- `/docs`: `docs`, to read only\n"),
            "{one}"
        );
        add(&mut groups, "other", vec![folder(&["/"], "`x`", Access::Read)]);
        let two = folders(&groups).expect("a text");
        assert!(two.contains("`read`, `write` can access") && two.contains("`other` can access"), "{two}");
        assert_eq!(folders(&[]), None);
        assert_eq!(network(&[]), None);
        assert_eq!(
            network(&["a:443".into()]).as_deref(),
            Some("Tools can send requests to `a:443`, and to no other host.")
        );
    }

    #[test]
    fn every_list_and_every_name_is_bounded() {
        let mut groups = Vec::new();
        for number in 0..100 {
            let many = (0..100).map(|at| folder(&["/"], &format!("`{number} {at}`"), Access::Read)).collect();
            add(&mut groups, &"x".repeat(5_000), many);
        }
        let text = folders(&groups).expect("a text");
        assert!(text.contains("- and 84 more\n") && text.contains("92 other groups of tools"), "{text}");
        let hosts: Vec<String> = (0..100).map(|number| format!("{number}.{}", "y".repeat(5_000))).collect();
        let hosts = network(&hosts).expect("a text");
        assert!(hosts.contains(" and 84 more, and to no other host."), "{hosts}");
        assert!(text.len() + hosts.len() < 16_384, "{} {}", text.len(), hosts.len());
        assert_eq!(quoted("a`b\n\u{1b}[2J"), "`a'b \\u{1b}[2J`");
    }
}
