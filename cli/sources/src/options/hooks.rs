//! Options for the scope of script hooks: `--allow-hooks` and `--deny-hooks`.

use std::path::{Path, PathBuf};

use toolcrib::policy::Permission;
use toolcrib_base::headings::PERMISSIONS;
use toolcrib_settings::selection::ALL;

/// Scope of script hooks.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HookOptions {
    /// Let the hooks of this source, or of all, handle the tools of other sources too; repeatable
    ///
    /// PATH is a source as in --tools. By default, a hook handles calls of tools of its own source alone, and events without a
    /// tool, such as `run.start`, if all tools are of its source.
    #[arg(long, value_name = "PATH", help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    allow_hooks: Vec<PathBuf>,
    /// Keep the hooks of this source, or of all, to the tools of their own source; overrides any --allow-* flag
    #[arg(long, value_name = "PATH", help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_hooks: Vec<PathBuf>,
}

impl HookOptions {
    /// Returns the allowances of the flags.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        self.allow_hooks.iter().map(|path| permission(path))
    }

    /// Returns the denials of the flags.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        self.deny_hooks.iter().map(|path| permission(path))
    }
}

/// Returns the permission of one value, a path or `*`.
pub(super) fn permission(path: &Path) -> Permission {
    Permission::Hooks((path.as_os_str() != ALL).then(|| path.to_path_buf()))
}
