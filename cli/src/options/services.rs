//! The options that say what scripts may ask of the crib itself: to run its programs, to hand tasks on, to add to it.

use toolcrib::policy::Permission;
use toolcrib::tool::Glob;

use super::{ALL, PERMISSIONS};

/// What scripts may do beside what every tool may.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Services {
    /// Let scripts run these programs of the crib, or all of them; NAME is a tool's, or like `fs_*`
    ///
    /// `exec.run` of a script runs a component, in a sandbox of its own and with no more than the script itself was
    /// granted; never a program of the system, and never a shell.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    allow_exec: Vec<Glob>,
    /// Let no script run these programs, or any; wins over any allowance
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_exec: Vec<Glob>,
    /// Let scripts and hooks hand tasks to another agent, which has the same tools and asks the same model (in a run)
    #[arg(long, help_heading = PERMISSIONS)]
    allow_delegate: bool,
    /// Let no script hand on a task; wins over any allowance
    #[arg(long, help_heading = PERMISSIONS)]
    deny_delegate: bool,
    /// Let scripts add tools and hooks to their run, with no more rights than their own
    #[arg(long, help_heading = PERMISSIONS)]
    allow_meta: bool,
    /// Let no script add anything; wins over any allowance
    #[arg(long, help_heading = PERMISSIONS)]
    deny_meta: bool,
}

impl Services {
    /// What is allowed.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        listed(&self.allow_exec, self.allow_delegate, self.allow_meta)
    }

    /// What is denied.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        listed(&self.deny_exec, self.deny_delegate, self.deny_meta)
    }
}

fn listed(exec: &[Glob], delegate: bool, meta: bool) -> impl Iterator<Item = Permission> {
    let delegate = delegate.then_some(Permission::Delegate);
    exec.iter().cloned().map(Permission::Exec).chain(delegate).chain(meta.then_some(Permission::Meta))
}
