//! Paths of the settings files: one place for each client, owner and system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toolcrib::policy::agent_settings;

use super::client::{Client, Scope};

/// Folder in which Windows keeps the settings of Claude Desktop if it was installed as a package.
const PACKAGED_CLAUDE: &str = "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude";

/// Operating system, as far as clients tell systems apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The system for which this program was built.
    pub fn current() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// Folders and variables that decide on paths.
pub struct Folders<'a> {
    /// Operating system.
    pub system: System,
    /// Home folder of the user.
    pub home: PathBuf,
    /// Folder of the project.
    pub project: PathBuf,
    /// Value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// `true` for a path that exists.
    pub exists: &'a dyn Fn(&Path) -> bool,
}

impl Folders<'_> {
    /// Returns the settings file of a client; `None` if the client has none for this owner.
    pub fn file(&self, client: Client, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.user_file(client)),
            Scope::Project => self.project_file(client),
        }
    }

    fn user_file(&self, client: Client) -> PathBuf {
        let home = &self.home;
        match client {
            Client::ClaudeCode => self.named("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json"),
            Client::ClaudeDesktop => self.claude_desktop().join("claude_desktop_config.json"),
            Client::Codex => self.named("CODEX_HOME").unwrap_or(home.join(".codex")).join("config.toml"),
            Client::VsCode => self.applications().join("Code/User/mcp.json"),
            Client::Cursor => home.join(".cursor/mcp.json"),
            Client::Gemini => home.join(".gemini/settings.json"),
            Client::OpenCode => self.existing(&self.config().join("opencode"), &["opencode.json", "opencode.jsonc"]),
            Client::Goose => match self.system {
                System::Windows => self.applications().join("Block/goose/config/config.yaml"),
                System::Linux | System::MacOs => self.config().join("goose/config.yaml"),
            },
            Client::Crush => self.config().join("crush/crush.json"),
            Client::Zed => match self.system {
                System::Linux => self.config().join("zed/settings.json"),
                System::MacOs => home.join(".config/zed/settings.json"),
                System::Windows => self.applications().join("Zed/settings.json"),
            },
        }
    }

    /// The names come from the table of the files that tools cannot write.
    fn project_file(&self, client: Client) -> Option<PathBuf> {
        let files = agent_settings(client.to_possible_value()?.get_name());
        (!files.is_empty()).then(|| self.existing(&self.project, files))
    }

    /// Returns the first of these files that exists, or else the first.
    fn existing(&self, folder: &Path, names: &[&str]) -> PathBuf {
        let found = names.iter().map(|name| folder.join(name)).find(|path| (self.exists)(path));
        found.unwrap_or_else(|| folder.join(names.first().unwrap_or(&"")))
    }

    fn claude_desktop(&self) -> PathBuf {
        let local = self.named("LOCALAPPDATA").unwrap_or(self.home.join("AppData/Local"));
        let packaged = local.join(PACKAGED_CLAUDE);
        match self.system {
            System::Windows if (self.exists)(&packaged) => packaged,
            _ => self.applications().join("Claude"),
        }
    }

    /// Folder in which applications of this system keep settings.
    fn applications(&self) -> PathBuf {
        match self.system {
            System::Linux => self.config(),
            System::MacOs => self.home.join("Library/Application Support"),
            System::Windows => self.named("APPDATA").unwrap_or(self.home.join("AppData/Roaming")),
        }
    }

    /// Folder of the XDG base directories, which several clients use on every system.
    fn config(&self) -> PathBuf {
        self.named("XDG_CONFIG_HOME").unwrap_or(self.home.join(".config"))
    }

    /// Returns the folder that a variable names; relative and empty values do not count.
    fn named(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.has_root())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path of a file, with `/home/a` as the home and `/p` as the project.
    fn path(system: System, client: Client, scope: Scope, set: &[(&str, &str)], existing: &[&str]) -> Option<String> {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let exists = |path: &Path| existing.iter().any(|known| path == Path::new(known));
        let folders =
            Folders { system, home: "/home/a".into(), project: "/p".into(), variable: &variable, exists: &exists };
        folders.file(client, scope).map(|path| path.to_string_lossy().replace('\\', "/"))
    }

    #[test]
    fn every_client_has_a_file_of_the_user_on_every_system() {
        let cases = [
            (Client::ClaudeCode, ".claude.json", ".claude.json", ".claude.json"),
            (
                Client::ClaudeDesktop,
                ".config/Claude/claude_desktop_config.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
                "AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            (Client::Codex, ".codex/config.toml", ".codex/config.toml", ".codex/config.toml"),
            (
                Client::VsCode,
                ".config/Code/User/mcp.json",
                "Library/Application Support/Code/User/mcp.json",
                "AppData/Roaming/Code/User/mcp.json",
            ),
            (Client::Cursor, ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
            (Client::Gemini, ".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json"),
            (
                Client::OpenCode,
                ".config/opencode/opencode.json",
                ".config/opencode/opencode.json",
                ".config/opencode/opencode.json",
            ),
            (
                Client::Goose,
                ".config/goose/config.yaml",
                ".config/goose/config.yaml",
                "AppData/Roaming/Block/goose/config/config.yaml",
            ),
            (Client::Crush, ".config/crush/crush.json", ".config/crush/crush.json", ".config/crush/crush.json"),
            (
                Client::Zed,
                ".config/zed/settings.json",
                ".config/zed/settings.json",
                "AppData/Roaming/Zed/settings.json",
            ),
        ];
        assert_eq!(cases.len(), Client::value_variants().len());
        for (client, linux, mac, windows) in cases {
            for (system, wanted) in [(System::Linux, linux), (System::MacOs, mac), (System::Windows, windows)] {
                let found = path(system, client, Scope::User, &[], &[]);
                assert_eq!(found, Some(format!("/home/a/{wanted}")), "{client:?} {system:?}");
            }
        }
    }

    #[test]
    fn most_clients_have_a_file_of_the_project() {
        for (client, wanted) in [
            (Client::ClaudeCode, Some("/p/.mcp.json")),
            (Client::ClaudeDesktop, None),
            (Client::Codex, Some("/p/.codex/config.toml")),
            (Client::VsCode, Some("/p/.vscode/mcp.json")),
            (Client::Cursor, Some("/p/.cursor/mcp.json")),
            (Client::Gemini, Some("/p/.gemini/settings.json")),
            (Client::OpenCode, Some("/p/opencode.json")),
            (Client::Goose, None),
            (Client::Crush, Some("/p/crush.json")),
            (Client::Zed, Some("/p/.zed/settings.json")),
        ] {
            assert_eq!(path(System::Linux, client, Scope::Project, &[], &[]).as_deref(), wanted, "{client:?}");
        }
        let found = path(System::Linux, Client::Crush, Scope::Project, &[], &["/p/.crush.json"]);
        assert_eq!(found.as_deref(), Some("/p/.crush.json"));
        let found = path(System::Linux, Client::OpenCode, Scope::Project, &[], &["/p/.opencode/opencode.jsonc"]);
        assert_eq!(found.as_deref(), Some("/p/.opencode/opencode.jsonc"));
    }

    #[test]
    fn variables_and_packages_move_files() {
        for (system, client, set, existing, wanted) in [
            (System::Linux, Client::Codex, ("CODEX_HOME", "/c"), "", "/c/config.toml"),
            (System::Linux, Client::Codex, ("CODEX_HOME", "relative"), "", "/home/a/.codex/config.toml"),
            (System::Linux, Client::ClaudeCode, ("CLAUDE_CONFIG_DIR", "/c"), "", "/c/.claude.json"),
            (System::Linux, Client::Zed, ("XDG_CONFIG_HOME", "/x"), "", "/x/zed/settings.json"),
            (System::Linux, Client::VsCode, ("XDG_CONFIG_HOME", ""), "", "/home/a/.config/Code/User/mcp.json"),
            (System::Windows, Client::VsCode, ("APPDATA", "/r"), "", "/r/Code/User/mcp.json"),
            (
                System::Windows,
                Client::ClaudeDesktop,
                ("LOCALAPPDATA", "/l"),
                "/l/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude",
                "/l/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            ),
        ] {
            let found = path(system, client, Scope::User, &[set], &[existing]);
            assert_eq!(found.as_deref(), Some(wanted), "{client:?} {set:?}");
        }
    }
}
