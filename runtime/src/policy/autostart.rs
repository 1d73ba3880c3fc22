//! Names of files that start something or instruct somebody by themselves: because a session starts, an editor opens, a shell enters
//! the folder, or version control runs. They are in tables by their readers. There are no files that run on request, such as
//! programs, a `Makefile` or tests, because writing those is the purpose of many tools.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Names below one another, at most two. A name protects everything below it; one `*` in it matches any text. The targets of links
/// are protected for names without a `*`, so the usual name stands beside a pattern.
type Names = &'static [&'static str];

/// Names for one kind of reader, and a description of what they control.
struct Readers {
    controls: &'static str,
    names: &'static [Names],
}

const SESSIONS: Readers = Readers {
    controls: "what later sessions may do",
    names: &[&["tools.json"], &["toolcrib.toml"], &["toolcrib.lock"], &["harness.md"], &[".harness"]],
};

/// Programs of manifests, including manifests that this session does not load.
const PROGRAMS: Readers = Readers { controls: "what later sessions run", names: &[&["tools", "bin"]] };

const VERSION_CONTROL: Readers = Readers {
    controls: "what version control runs",
    names: &[
        &[".git", "hooks"],
        &[".git", "config"],
        &[".git", "config.worktree"],
        // Nested repositories, and the links of a repository to its other parts.
        &[".git", "modules"],
        &[".git", "worktrees"],
        &[".git", "commondir"],
        &[".git", "gitdir"],
        &[".hg", "hgrc"],
        &[".hg", "hgrc*"],
        &[".hg", "requires"],
        &[".hg", "sharedpath"],
        &[".hg", "shared"],
        &[".jj"],
        &[".sl"],
        &[".svn"],
        &[".bzr"],
        &[".husky"],
        &[".pre-commit-config.yaml"],
        &[".pre-commit-config.yml"],
        &["lefthook.*"],
        &[".lefthook.*"],
        &["lefthook-local.*"],
        &[".overcommit.yml"],
        &[".pijul"],
        &["_darcs"],
        &[".gitconfig"],
        &[".config", "git"],
        &[".hgrc"],
        &[".config", "hg"],
        &[".jjconfig.toml"],
        &[".config", "jj"],
        &[".config", "sapling"],
        &[".subversion"],
    ],
};

/// Repositories that tools may fill, but not create, move or replace, because they would bring their hooks with them.
const REPOSITORIES: [&str; 2] = [".git", ".hg"];

const EDITORS: Readers = Readers {
    controls: "what editors run",
    names: &[
        &[".vscode"],
        &["*.code-workspace"],
        &[".idea"],
        &[".fleet"],
        &[".zed"],
        &[".vs"],
        &[".nova"],
        &[".helix"],
        &[".devcontainer"],
        &[".devcontainer.json"],
        &[".dir-locals.el"],
        &[".dir-locals*.el"],
        &[".exrc"],
        &[".nexrc"],
        &[".vimrc"],
        &["_vimrc"],
        &["_exrc"],
        &[".config", "Code"],
        &[".config", "Cursor"],
        &[".config", "VSCodium"],
        &["Application Support", "Code"],
        &["Application Support", "Cursor"],
        &["Application Support", "VSCodium"],
        &["Roaming", "Code"],
        &["Roaming", "Cursor"],
        &["Roaming", "VSCodium"],
        &["Roaming", "Zed"],
        &[".gvimrc"],
        &[".nvimrc"],
        &[".nvim.lua"],
        &[".lvimrc"],
        &[".vim"],
        &[".emacs"],
        &[".emacs.d"],
        &[".emacs*"],
        &[".config", "nvim"],
        &[".config", "helix"],
        &[".config", "emacs"],
        &[".config", "zed"],
        &["*.sublime-project"],
    ],
};

const SHELLS: Readers = Readers {
    controls: "what shells run on entering the folder",
    names: &[
        &[".envrc"],
        &[".envrc*"],
        &[".direnv"],
        &[".direnvrc"],
        &[".config", "direnv"],
        &["mise.*toml"],
        &[".mise.*toml"],
        &["mise.toml"],
        &[".mise.toml"],
        &["mise", "config.toml"],
        &["mise", "config*.toml"],
        &["mise", "conf.d"],
        &[".mise"],
        &["mise.lock"],
        &["mise-tasks"],
        &[".mise-tasks"],
        &["mise", "tasks"],
        &[".config", "mise"],
        &[".config", "mise.toml"],
        &[".config", "mise*.toml"],
        &[".miserc.toml"],
        &[".rtx*.toml"],
        &[".rtx"],
        &[".tool-versions"],
        &[".autoenv*"],
        &[".shadowenv.d"],
        &[".rvmrc"],
    ],
};

const STARTS: Readers = Readers {
    controls: "what shells and desktops run when they start",
    names: &[
        &[".profile"],
        &[".bashrc"],
        &[".bash_profile"],
        &[".bash_login"],
        &[".bash_logout"],
        &[".bash_aliases"],
        &[".zshenv"],
        &[".zprofile"],
        &[".zshrc"],
        &[".zlogin"],
        &[".zlogout"],
        &[".kshrc"],
        &[".cshrc"],
        &[".tcshrc"],
        &[".login"],
        &[".inputrc"],
        &[".xprofile"],
        &[".xinitrc"],
        &[".xsession*"],
        &[".pam_environment"],
        &[".ssh"],
        &[".config", "fish"],
        &[".config", "nushell"],
        &[".config", "powershell"],
        &[".config", "autostart"],
        &[".config", "systemd"],
        &[".config", "environment.d"],
        &["Library", "LaunchAgents"],
    ],
};

const AGENTS: Readers = Readers {
    controls: "what other agents follow or start",
    names: &[
        &["AGENTS.md"],
        &["AGENTS.*md"],
        &["AGENT.md"],
        &[".agents"],
        &["CLAUDE.md"],
        &["CLAUDE.*md"],
        &[".claude"],
        &[".claude.json"],
        &["claude_desktop_config.json"],
        &[".cursorrules"],
        &["GEMINI.md"],
        &[".crush"],
        &["CRUSH.md"],
        &[".goosehints"],
        &[".goose"],
        &[".opencode"],
        &[".config", "opencode"],
        &[".config", "goose"],
        &[".config", "crush"],
        &[".windsurf"],
        &[".windsurfrules"],
        &[".clinerules*"],
        &[".roo"],
        &[".roorules*"],
        &[".roomodes"],
        &[".continue"],
        &[".continuerules"],
        &[".aider*"],
        &[".amazonq"],
        &[".kiro"],
        &[".junie"],
        &[".qwen"],
        &["QWEN.md"],
        &[".factory"],
        &[".trae"],
        &[".augment"],
        &[".rules"],
        &["WARP.md"],
        &[".kilocode"],
        &[".kilocoderules*"],
        &[".amp"],
        &[".agent"],
        &[".augment-guidelines"],
        &[".openhands"],
        &[".copilot"],
        &[".github", "chatmodes"],
        &[".github", "hooks"],
        &[".github", "copilot-instructions.md"],
        &[".github", "instructions"],
        &[".github", "agents"],
        &[".github", "prompts"],
    ],
};

const TABLES: [&Readers; 7] = [&SESSIONS, &PROGRAMS, &VERSION_CONTROL, &EDITORS, &SHELLS, &STARTS, &AGENTS];

/// Agent settings in a project, with their Model Context Protocol servers: the name of the client, and the paths of its
/// files. An existing file is used, else the first.
const AGENT_SETTINGS: [(&str, &[&str]); 8] = [
    ("claude-code", &[".mcp.json"]),
    ("codex", &[".codex/config.toml"]),
    ("vscode", &[".vscode/mcp.json"]),
    ("cursor", &[".cursor/mcp.json"]),
    ("gemini", &[".gemini/settings.json"]),
    ("opencode", &["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"]),
    ("crush", &["crush.json", ".crush.json"]),
    ("zed", &[".zed/settings.json"]),
];

/// Maximum number of parent names that a protected name requires: one less than the longest sequence above.
#[cfg_attr(windows, allow(dead_code, reason = "moved folders are judged by whole paths there"))]
pub(crate) const MAX_PARENT_NAMES: usize = 1;

/// Returns the settings files in a project for a client of the Model Context Protocol, as relative paths with `/`; none
/// for a client that has no settings in projects. Tools cannot write them.
pub fn agent_settings(client: &str) -> &'static [&'static str] {
    AGENT_SETTINGS.iter().find(|(name, _)| *name == client).map_or(&[], |(_, files)| files)
}

/// Protected names, by their last name.
struct Index {
    exact: HashMap<String, Vec<Entry>>,
    /// Those with a `*` in their last name: the text before it and the text after it.
    patterns: Vec<(String, String, Entry)>,
    /// First names of those that have two.
    parents: HashSet<String>,
    /// First names without a `*`, each with the second names that follow it.
    first: Vec<(&'static str, Vec<Option<&'static str>>)>,
}

#[derive(Clone)]
struct Entry {
    /// Required name of the folder above.
    parent: Option<String>,
    controls: &'static str,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { exact: HashMap::new(), patterns: Vec::new(), parents: HashSet::new(), first: Vec::new() };
    for readers in TABLES {
        readers.names.iter().for_each(|names| index.add(names, readers.controls));
    }
    for (_, files) in AGENT_SETTINGS {
        // Everything in the folder of an agent is its own.
        files.iter().for_each(|file| index.add(&[file.split('/').next().unwrap_or(file)], AGENTS.controls));
    }
    index
});

impl Index {
    fn add(&mut self, names: &[&'static str], controls: &'static str) {
        let (parent, last) = match *names {
            [parent, last] => (Some(parent), last),
            [last] => (None, last),
            _ => return,
        };
        let entry = Entry { parent: parent.map(str::to_lowercase), controls };
        self.parents.extend(entry.parent.clone());
        match last.split_once('*') {
            Some((start, end)) => self.patterns.push((start.to_lowercase(), end.to_lowercase(), entry)),
            None => self.exact.entry(last.to_lowercase()).or_default().push(entry),
        }
        if last.contains('*') {
            return;
        }
        let (first, second) = parent.map_or((last, None), |parent| (parent, Some(last)));
        match self.first.iter_mut().find(|(known, _)| *known == first) {
            Some((_, seconds)) => seconds.push(second),
            None => self.first.push((first, vec![second])),
        }
    }
}

/// Describes what a protected name on a path controls; `None` if none is protected. `names` are folded, from the root.
pub(super) fn controls(names: &[String]) -> Option<&'static str> {
    let index = &*INDEX;
    let found = names.iter().enumerate().find_map(|(at, name)| {
        let is_below = |entry: &&Entry| match &entry.parent {
            None => true,
            Some(parent) => at.checked_sub(1).is_some_and(|above| names[above] == *parent),
        };
        let exact = index.exact.get(name.as_str()).into_iter().flatten().find(is_below);
        let by_pattern = || {
            let mut patterns = index.patterns.iter().filter(|(start, end, _)| {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            });
            patterns.find_map(|(_, _, entry)| is_below(&entry).then_some(entry))
        };
        exact.or_else(by_pattern).map(|entry| entry.controls)
    });
    let is_repository = || names.last().is_some_and(|last| REPOSITORIES.contains(&last.as_str()));
    found.or_else(|| is_repository().then_some(VERSION_CONTROL.controls))
}

/// Returns `true` if protected names can lie directly below a folder of this folded name.
pub(super) fn has_names_below(name: &str) -> bool {
    INDEX.parents.contains(name)
}

/// Lists the protected names without patterns: the first one, and those that may follow it; `None` if it is protected itself.
pub(super) fn listed() -> impl Iterator<Item = (&'static str, &'static [Option<&'static str>])> {
    INDEX.first.iter().map(|(first, seconds)| (*first, seconds.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_sequences_of_one_or_two_names() {
        let all = TABLES.iter().flat_map(|readers| readers.names);
        for names in all {
            assert!((1..=MAX_PARENT_NAMES + 1).contains(&names.len()), "{names:?}");
            assert!(names.iter().rev().skip(1).all(|above| !above.contains('*')), "{names:?}");
            assert!(names.iter().all(|name| name.matches('*').count() <= 1), "{names:?}");
        }
    }

    #[test]
    fn the_settings_of_each_client_are_protected() {
        for (client, files) in AGENT_SETTINGS {
            for file in files {
                let names: Vec<String> = file.split('/').map(str::to_owned).collect();
                assert!(controls(&names).is_some(), "{client}: {file}");
            }
        }
        assert!(agent_settings("other").is_empty());
    }
}
