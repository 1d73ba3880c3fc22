//! The options that say what scripts and rich tools may ask of the crib itself: to run its programs, to call its tools, to
//! ask its model, to hand tasks on, to add to it.

use toolcrib::policy::Permission;
use toolcrib::tool::Glob;

use super::{ALL, PERMISSIONS};

/// What scripts and rich tools may do beside what every tool may.
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
    /// Let tools call these other tools, or all of them; NAME is a tool's, or like `fs_*`
    ///
    /// A call that a tool makes goes the way of every call, under the other tool's own grant, rules and hooks.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    allow_call: Vec<Glob>,
    /// Let no tool call these others, or any; wins over any allowance
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_call: Vec<Glob>,
    /// Let tools ask the run's model, without tools and within bounds
    #[arg(long, help_heading = PERMISSIONS)]
    allow_model: bool,
    /// Let no tool ask the model; wins over any allowance
    #[arg(long, help_heading = PERMISSIONS)]
    deny_model: bool,
}

impl Services {
    /// What is allowed.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        let switches = [
            (self.allow_delegate, Permission::Delegate),
            (self.allow_meta, Permission::Meta),
            (self.allow_model, Permission::Model),
        ];
        listed(&self.allow_exec, &self.allow_call, switches)
    }

    /// What is denied.
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
