//! Options for services that scripts and rich tools may use: running programs, calling tools, asking the model,
//! delegating tasks, registering tools.

use toolcrib::policy::Permission;
use toolcrib::tool::Glob;

use super::{ALL, PERMISSIONS};

/// Permissions specific to scripts and rich tools.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Services {
    /// Allow scripts to run these programs from the crib, or all; NAME is a tool name or a pattern like `fs_*`
    ///
    /// `exec.run` runs a component in its own sandbox with no more permissions than the script. It never runs a system
    /// program or a shell.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    allow_exec: Vec<Glob>,
    /// Deny scripts these programs, or all; overrides any --allow-* flag
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_exec: Vec<Glob>,
    /// Allow scripts and hooks to delegate tasks to another agent with the same tools and model (in a run)
    #[arg(long, help_heading = PERMISSIONS)]
    allow_delegate: bool,
    /// Deny delegating tasks; overrides any --allow-* flag
    #[arg(long, help_heading = PERMISSIONS)]
    deny_delegate: bool,
    /// Let scripts register tools and hooks for this run (never with more permissions than the script)
    #[arg(long, help_heading = PERMISSIONS)]
    allow_meta: bool,
    /// Deny registering tools and hooks; overrides any --allow-* flag
    #[arg(long, help_heading = PERMISSIONS)]
    deny_meta: bool,
    /// Allow tools to call these other tools, or all; NAME is a tool name or a pattern like `fs_*`
    ///
    /// A nested call is handled like any call, under the called tool's own permissions, rules and hooks.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    allow_call: Vec<Glob>,
    /// Deny tools calling these other tools, or any; overrides any --allow-* flag
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_call: Vec<Glob>,
    /// Allow tools to ask the run's model, without tools and within limits
    #[arg(long, help_heading = PERMISSIONS)]
    allow_model: bool,
    /// Deny tools asking the model; overrides any --allow-* flag
    #[arg(long, help_heading = PERMISSIONS)]
    deny_model: bool,
}

impl Services {
    /// Returns the allowed services.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        let switches = [
            (self.allow_delegate, Permission::Delegate),
            (self.allow_meta, Permission::Meta),
            (self.allow_model, Permission::Model),
        ];
        listed(&self.allow_exec, &self.allow_call, switches)
    }

    /// Returns the denied services.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        let switches = [
            (self.deny_delegate, Permission::Delegate),
            (self.deny_meta, Permission::Meta),
            (self.deny_model, Permission::Model),
        ];
        listed(&self.deny_exec, &self.deny_call, switches)
    }
}

fn listed<const N: usize>(
    exec: &[Glob],
    call: &[Glob],
    switches: [(bool, Permission); N],
) -> impl Iterator<Item = Permission> {
    let switched = switches.into_iter().filter(|(on, _)| *on).map(|(_, permission)| permission);
    let call = call.iter().cloned().map(Permission::Call);
    exec.iter().cloned().map(Permission::Exec).chain(call).chain(switched)
}
