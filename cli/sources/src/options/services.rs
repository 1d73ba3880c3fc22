//! Options for services that scripts and rich tools may use: `--allow-NAME` and `--deny-NAME` for each [`Service`].

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toolcrib::policy::Permission;
use toolcrib::tool::{Glob, Service, ServiceKind};
use toolcrib_base::headings::PERMISSIONS;
use toolcrib_settings::selection::ALL;
use toolcrib_settings::selection::{Limited, globs};

/// Permissions specific to scripts and rich tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Services {
    allowed: Vec<Permission>,
    denied: Vec<Permission>,
}

/// Help of the flags of one service.
struct Help {
    service: Service,
    /// `allow-NAME` and `deny-NAME`.
    flags: [&'static str; 2],
    allow: &'static str,
    /// A second paragraph of `allow`, for `--help` alone.
    more: Option<&'static str>,
    deny: &'static str,
}

/// The flags, in the order of the help.
const FLAGS: [Help; Service::ALL.len()] = [
    Help {
        service: Service::Exec,
        flags: ["allow-exec", "deny-exec"],
        allow: "Allow scripts to run these programs from the crib, or all; NAME is a tool name or a pattern like `fs_*`",
        more: Some(
            "`exec.run` runs a component in its own sandbox with no more permissions than the script. It never runs a \
             system program or a shell.",
        ),
        deny: "Deny scripts these programs, or all; overrides any --allow-* flag",
    },
    Help {
        service: Service::Delegate,
        flags: ["allow-delegate", "deny-delegate"],
        allow: "Allow scripts and hooks to delegate tasks to another agent with the same tools and model (in a run)",
        more: None,
        deny: "Deny delegating tasks; overrides any --allow-* flag",
    },
    Help {
        service: Service::Meta,
        flags: ["allow-meta", "deny-meta"],
        allow: "Let scripts register tools and hooks for this run (never with more permissions than the script)",
        more: None,
        deny: "Deny registering tools and hooks; overrides any --allow-* flag",
    },
    Help {
        service: Service::Call,
        flags: ["allow-call", "deny-call"],
        allow: "Allow tools to call these other tools, or all; NAME is a tool name or a pattern like `fs_*`",
        more: Some("A nested call is handled like any call, under the called tool's own permissions, rules and hooks."),
        deny: "Deny tools calling these other tools, or any; overrides any --allow-* flag",
    },
    Help {
        service: Service::Model,
        flags: ["allow-model", "deny-model"],
        allow: "Allow tools to ask the run's model, without tools and within limits",
        more: None,
        deny: "Deny tools asking the model; overrides any --allow-* flag",
    },
];

/// Returns the name of the flag that allows a service.
pub(super) fn allow_flag(service: Service) -> &'static str {
    FLAGS.iter().find(|help| help.service == service).map_or("", |help| help.flags[0])
}

impl Services {
    /// Returns the allowed services.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        self.allowed.iter().cloned()
    }

    /// Returns the denied services.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        self.denied.iter().cloned()
    }
}

impl Help {
    /// Creates a flag.
    fn flag(&self, name: &'static str, help: &'static str, more: Option<&'static str>) -> Arg {
        let flag = Arg::new(name).long(name).help(help).help_heading(PERMISSIONS);
        let flag = match more {
            Some(more) => flag.long_help(format!("{help}\n\n{more}")),
            None => flag,
        };
        match self.service.kind() {
            ServiceKind::Switch => flag.action(ArgAction::SetTrue),
            ServiceKind::Names => flag
                .value_name("NAME")
                .action(ArgAction::Append)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value(ALL)
                .value_parser(ValueParser::new(globs)),
        }
    }

    /// Returns the permissions of a flag.
    fn permissions(&self, name: &str, matches: &mut ArgMatches) -> Vec<Permission> {
        let service = self.service;
        match service.kind() {
            ServiceKind::Switch if matches.get_flag(name) => vec![Permission::service(service)],
            ServiceKind::Switch => Vec::new(),
            ServiceKind::Names => {
                let lists = matches.remove_many::<Limited<Glob>>(name).into_iter().flatten();
                let permission = |name| Permission::Service(service, name);
                lists.flat_map(|list| list.permissions(permission).collect::<Vec<_>>()).collect()
            }
        }
    }
}

impl clap::Args for Services {
    fn augment_args(command: Command) -> Command {
        let flags = FLAGS.iter().flat_map(|it| {
            let [allow, deny] = it.flags;
            [it.flag(allow, it.allow, it.more), it.flag(deny, it.deny, None)]
        });
        command.args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Services {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let mut of = |at: usize| FLAGS.iter().flat_map(|it| it.permissions(it.flags[at], matches)).collect();
        Ok(Self { allowed: of(0), denied: of(1) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_flags_of_its_name() {
        for service in Service::ALL {
            let flags = FLAGS.iter().find(|it| it.service == service).map(|it| it.flags.map(str::to_owned));
            assert_eq!(flags, Some(["allow", "deny"].map(|verb| format!("{verb}-{}", service.as_str()))));
        }
    }
}
