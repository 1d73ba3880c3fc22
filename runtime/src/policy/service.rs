//! The services that a tool is granted: each [`Service`], and a store for values. Only scripts and rich tools have a
//! way to use more than a store.

use crate::call::{Denial, pasted};
use crate::tool::{Body, Glob, Import, Service, ServiceKind, ServiceUser, Tool};

use super::resolved::Allowed;

/// Prefix of the imports that store a program's values.
const STORE: &str = "wasi:keyvalue/";

/// The services of one tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    services: Vec<Right>,
    cache: bool,
    /// `true` if its values may outlast its call, by a store that its program imports.
    keeps: bool,
}

/// One service with its names. A service without names has the glob `*` in each list that it is in.
#[derive(Debug, Clone)]
struct Right {
    service: Service,
    requested: Vec<Glob>,
    allowed: Vec<Glob>,
    denied: Vec<Glob>,
}

impl Rights {
    /// Creates the rights of `tool`: its requests as far as `allowed` allows them. Stated requests that are not granted are
    /// added to `denied`. `by_naming` is `true` if the tool's source allows the items that it names.
    pub(super) fn new(tool: &Tool, by_naming: bool, allowed: &Allowed, denied: &mut Vec<Denial>) -> Self {
        let requested = &tool.requested;
        // A script stores values for the run without a request, and has no other store.
        let cache = requested.cache || !requested.declared;
        let user = match tool.body {
            Body::Script(_) => {
                return Self {
                    services: services(tool, ServiceUser::Script, by_naming && requested.declared, allowed, denied),
                    ..Self::default()
                };
            }
            Body::Rich(_) | Body::Typed(_) => Some(ServiceUser::Program),
            _ => None,
        };
        let imports_store = |imports: &[Import]| imports.iter().any(|import| import.from.starts_with(STORE));
        let keeps = cache && tool.body.program().is_some() && tool.imports.as_deref().is_none_or(imports_store);
        let by_naming = by_naming && requested.declared;
        let services = user.map(|user| services(tool, user, by_naming, allowed, denied)).unwrap_or_default();
        Self { services, cache, keeps }
    }

    /// Checks the use of a service, for a name if the service has any.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would allow it.
    pub(crate) fn check(&self, service: Service, name: Option<&str>) -> Result<(), Denial> {
        match self.services.iter().find(|right| right.service == service) {
            Some(right) => right.check(name),
            None => Err(Denial { capability: capability(service, name), flag: None }),
        }
    }

    /// Checks the storage of values.
    ///
    /// # Errors
    ///
    /// The denial: only a request of the tool is missing.
    pub(crate) fn cache(&self) -> Result<(), Denial> {
        if self.cache { Ok(()) } else { Err(Denial { capability: "cache".to_owned(), flag: None }) }
    }

    /// Returns `true` if its calls may leave values for one another, themselves or by a service.
    pub(crate) fn may_leave_values(&self) -> bool {
        self.keeps || self.reaches_beyond()
    }

    /// Returns `true` if its calls may leave values for one another.
    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Returns the granted services in words, as a receipt lists them: those with names first.
    pub(super) fn granted(&self) -> impl Iterator<Item = String> {
        let of_kind = |kind| self.services.iter().filter(move |right| right.service.kind() == kind);
        let switches = of_kind(ServiceKind::Switch).filter(|right| right.check(None).is_ok());
        let switches = switches.map(|right| right.service.as_str().to_owned());
        of_kind(ServiceKind::Names).flat_map(Right::granted_names).chain(switches)
    }

    /// Returns `true` if a service reaches further than the tool's own grant. Programs that a script runs do not.
    pub(super) fn reaches_beyond(&self) -> bool {
        self.services.iter().any(|right| match right.service.kind() {
            ServiceKind::Switch => right.check(None).is_ok(),
            ServiceKind::Names => {
                right.service != Service::Exec && !right.requested.is_empty() && !right.allowed.is_empty()
            }
        })
    }
}

/// Returns the services that a tool of this kind can use.
fn services(
    tool: &Tool,
    user: ServiceUser,
    by_naming: bool,
    allowed: &Allowed,
    denied: &mut Vec<Denial>,
) -> Vec<Right> {
    let of = |globs: &[(Service, Glob)], service: Service| {
        globs.iter().filter(|(of, _)| *of == service).map(|(_, glob)| glob.clone()).collect::<Vec<_>>()
    };
    let is_switch = |service: &Service| service.kind() == ServiceKind::Switch;
    let (switches, named): (Vec<_>, Vec<_>) =
        Service::ALL.into_iter().filter(|service| service.user() == user).partition(is_switch);
    let rights = switches.into_iter().chain(named).map(|service| {
        let requested = tool.requested.service(service);
        let (mut allows, denies) = (of(&allowed.services, service), of(&allowed.denied_services, service));
        // A request for every name asks for the operator's names and allows none.
        if by_naming && (is_switch(&service) || !requested.iter().any(Glob::is_everything)) {
            allows.splice(..0, requested.iter().cloned());
        }
        let stated = if tool.requested.declared { requested.clone() } else { vec![Glob::everything()] };
        let right = Right { service, requested: stated, allowed: allows, denied: denies };
        denied.extend(match service.kind() {
            ServiceKind::Switch if requested.is_empty() => Vec::new(),
            ServiceKind::Switch => right.check(None).err().into_iter().collect(),
            ServiceKind::Names => {
                let names = requested.iter().filter(|name| user == ServiceUser::Script || !name.is_everything());
                names.filter_map(|name| right.check(Some(name.as_str())).err()).collect::<Vec<_>>()
            }
        });
        right
    });
    rights.collect()
}

impl Right {
    fn check(&self, name: Option<&str>) -> Result<(), Denial> {
        let is_in = |globs: &[Glob]| match name {
            Some(name) => globs.iter().any(|glob| glob.is_match(name)),
            None => !globs.is_empty(),
        };
        let is_open = is_in(&self.requested) && !is_in(&self.denied);
        if is_open && is_in(&self.allowed) {
            return Ok(());
        }
        let flag = format!("--allow-{}", self.service.as_str());
        let flag = match name {
            Some(name) => pasted(&flag, name),
            None => Some(flag),
        };
        Err(Denial { capability: capability(self.service, name), flag: flag.filter(|_| is_open) })
    }

    /// Returns the names that are both requested and allowed, in words.
    fn granted_names(&self) -> impl Iterator<Item = String> {
        self.requested.iter().flat_map(move |requested| {
            let both = self.allowed.iter().filter_map(move |allowed| match (requested.is_everything(), allowed) {
                (true, allowed) => Some(allowed.as_str()),
                (false, allowed) if allowed.is_match(requested.as_str()) => Some(requested.as_str()),
                (false, allowed) if requested.is_match(allowed.as_str()) => Some(allowed.as_str()),
                _ => None,
            });
            both.map(move |name| capability(self.service, Some(name)))
        })
    }
}

/// Returns a service in words, such as `model` or `call:fs_read_file`.
fn capability(service: Service, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{}:{name}", service.as_str()),
        None => service.as_str().to_owned(),
    }
}
