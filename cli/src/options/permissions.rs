//! Options for permissions of tools. They are given for all clients on the command line, and for one with its token.

use std::path::{Path, PathBuf};

use toolcrib::policy::Permission;

use super::hooks::HookOptions;
use super::network::Destinations;
use super::secrets::SecretPermissions;
use super::services::Services;
use super::{ALL, PERMISSIONS};

/// Permissions of tools: allowances, and denials that override them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Permissions {
    /// Allow tools to read these folders and everything below them
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_read: Vec<PathBuf>,
    /// Allow tools to read and write these folders and everything below them
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_write: Vec<PathBuf>,
    /// Allow tools to read these environment variables
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_env: Vec<String>,
    /// Deny reading in these folders, or everywhere; overrides any --allow-* flag
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_read: Vec<PathBuf>,
    /// Deny writing in these folders, or everywhere; overrides any --allow-* flag
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_write: Vec<PathBuf>,
    /// Deny these environment variables, or all; overrides any --allow-* flag
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_env: Vec<String>,
    #[command(flatten)]
    pub(super) secrets: SecretPermissions,
    #[command(flatten)]
    destinations: Destinations,
    #[command(flatten)]
    services: Services,
    #[command(flatten)]
    hooks: HookOptions,
}

impl Permissions {
    /// Returns the permissions of the `--allow-*` flags.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        (self.allow_read.iter().cloned().map(Permission::Read))
            .chain(self.allow_write.iter().cloned().map(Permission::Write))
            .chain(self.allow_env.iter().cloned().map(Permission::Env))
            .chain(self.destinations.allowed())
            .chain(self.services.allowed())
            .chain(self.hooks.allowed())
            .chain(self.secrets.allowed())
    }

    /// Returns the permissions of the `--deny-*` flags.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        (self.deny_read.iter().map(|path| denied_folder(path)).map(Permission::Read))
            .chain(self.deny_write.iter().map(|path| denied_folder(path)).map(Permission::Write))
            .chain(self.deny_env.iter().cloned().map(Permission::Env))
            .chain(self.destinations.denied())
            .chain(self.services.denied())
            .chain(self.hooks.denied())
            .chain(self.secrets.denied())
    }

    /// Allows writing in one more folder.
    pub(super) fn also_write(&mut self, folder: PathBuf) {
        self.allow_write.insert(0, folder);
    }
}

/// Returns the folder of a denial; `*` means every folder.
pub(super) fn denied_folder(path: &Path) -> PathBuf {
    if path.as_os_str() == ALL { PathBuf::from("/") } else { path.to_path_buf() }
}
