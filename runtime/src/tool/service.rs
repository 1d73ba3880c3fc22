//! The table of services: capabilities beside files, variables, secrets and the network. A tool requests them, a flag allows
//! them, and a denial names the flag. Parsing, policy and the command line follow from this table.

use super::{Capabilities, Glob};

/// Service of the crib that a tool may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Running the programs of the crib from a script.
    Exec,
    /// Handing tasks to other agents from a script.
    Delegate,
    /// Adding tools and hooks to the run from a script, with no more rights than the script's own.
    Meta,
    /// Asking the host's model.
    Model,
    /// Calling other tools.
    Call,
}

/// Kind of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceKind {
    /// Granted or not.
    Switch,
    /// Granted for names, by globs.
    Names,
}

/// Tools that have a way to use a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceUser {
    /// Scripts.
    Script,
    /// Rich tools and functions of components.
    Program,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 5] = [Self::Exec, Self::Delegate, Self::Meta, Self::Model, Self::Call];

    /// Table row: key in the `capabilities` of a source, name in flags, receipts and denials, kind, user.
    const fn row(self) -> (&'static str, &'static str, ServiceKind, ServiceUser) {
        match self {
            Self::Exec => ("exec", "exec", ServiceKind::Names, ServiceUser::Script),
            Self::Delegate => ("delegate", "delegate", ServiceKind::Switch, ServiceUser::Script),
            Self::Meta => ("meta", "meta", ServiceKind::Switch, ServiceUser::Script),
            Self::Model => ("model", "model", ServiceKind::Switch, ServiceUser::Program),
            Self::Call => ("tools", "call", ServiceKind::Names, ServiceUser::Program),
        }
    }

    /// Returns the key in `capabilities` of a source.
    pub fn key(self) -> &'static str {
        self.row().0
    }

    /// Returns the name in flags, receipts and denials: `--allow-NAME`.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// Returns the kind.
    pub fn kind(self) -> ServiceKind {
        self.row().2
    }

    /// Returns the tools that can use it.
    pub fn user(self) -> ServiceUser {
        self.row().3
    }
}

impl Capabilities {
    /// Returns the names for which a service is requested. For a switch that is requested, that is `*`.
    pub fn service(&self, service: Service) -> Vec<Glob> {
        let switch = |requested: bool| if requested { vec![Glob::everything()] } else { Vec::new() };
        match service {
            Service::Exec => self.exec.clone(),
            Service::Delegate => switch(self.delegate),
            Service::Meta => switch(self.meta),
            Service::Model => switch(self.model),
            Service::Call => self.tools.clone(),
        }
    }

    /// Requests a service for these names.
    pub(crate) fn request(&mut self, service: Service, names: Vec<Glob>) {
        match service {
            Service::Exec => self.exec = names,
            Service::Delegate => self.delegate = !names.is_empty(),
            Service::Meta => self.meta = !names.is_empty(),
            Service::Model => self.model = !names.is_empty(),
            Service::Call => self.tools = names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_service_is_the_only_one_requested() {
        for service in Service::ALL {
            let mut requested = Capabilities::default();
            requested.request(service, vec![Glob::everything()]);
            let found = Service::ALL.into_iter().filter(|other| !requested.service(*other).is_empty());
            assert_eq!(found.collect::<Vec<_>>(), [service]);
        }
    }
}
