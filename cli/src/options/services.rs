//! The flags for the services of the crib: `--allow-NAME` and `--deny-NAME` for each [`Service`].

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toolcrib::policy::Permission;
use toolcrib::tool::{Glob, Service, ServiceKind};

use super::{ALL, PERMISSIONS};

/// Permissions for services.
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
        allow: "Let scripts run these programs of the crib, or all of them; NAME is a tool's, or like `fs_*`",
        more: Some(
            "`exec.run` of a script runs a component, in a sandbox of its own and with no more than the script itself was \
             granted; never a program of the system, and never a shell.",
        ),
        deny: "Let no script run these programs, or any; wins over any allowance",
    },
    Help {
        service: Service::Delegate,
        flags: ["allow-delegate", "deny-delegate"],
        allow: "Let scripts and hooks hand tasks to another agent, which has the same tools and asks the same model (in a run)",
        more: None,
        deny: "Let no script hand on a task; wins over any allowance",
    },
    Help {
        service: Service::Meta,
        flags: ["allow-meta", "deny-meta"],
        allow: "Let scripts add tools and hooks to their run, with no more rights than their own",
        more: None,
        deny: "Let no script add anything; wins over any allowance",
    },
    Help {
        service: Service::Call,
        flags: ["allow-call", "deny-call"],
        allow: "Let tools call these other tools, or all of them; NAME is a tool's, or like `fs_*`",
        more: Some(
            "A call that a tool makes goes the way of every call, under the other tool's own grant, rules and hooks.",
        ),
        deny: "Let no tool call these others, or any; wins over any allowance",
    },
    Help {
        service: Service::Model,
        flags: ["allow-model", "deny-model"],
        allow: "Let tools ask the run's model, without tools and within bounds",
        more: None,
        deny: "Let no tool ask the model; wins over any allowance",
    },
];

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
                .value_delimiter(',')
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value(ALL)
                .value_parser(ValueParser::new(|text: &str| text.parse::<Glob>())),
        }
    }

    /// Returns the permissions of a flag.
    fn permissions(&self, name: &str, matches: &mut ArgMatches) -> Vec<Permission> {
        let service = self.service;
        match service.kind() {
            ServiceKind::Switch if matches.get_flag(name) => vec![Permission::service(service)],
            ServiceKind::Switch => Vec::new(),
            ServiceKind::Names => {
                let names = matches.remove_many::<Glob>(name).into_iter().flatten();
                names.map(|name| Permission::Service(service, name)).collect()
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
