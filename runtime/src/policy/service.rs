//! Services that a running tool may use: scripts run programs, delegate tasks, and register tools and hooks; rich tools call
//! other tools and the model; every program stores values.

use crate::call::{Denial, pasted};
use crate::tool::{Body, Glob, Import, Tool};

use super::resolved::Allowed;

/// Prefix of the imports for key-value stores.
const STORE_PREFIX: &str = "wasi:keyvalue/";

/// Services that a tool is granted. Only scripts and rich tools can use more than a store of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    exec: Names,
    delegate: Right,
    meta: Right,
    call: Names,
    model: Right,
    cache: bool,
    /// `true` if its program imports a store, whose values may outlive the call.
    keeps: bool,
}

/// Names of programs or tools that are requested, allowed and denied.
#[derive(Debug, Clone, Default)]
struct Names {
    asked: Vec<Glob>,
    allowed: Vec<Glob>,
    denied: Vec<Glob>,
}

/// Grant state of a yes/no capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Right {
    Granted,
    /// Requested, but not allowed by a flag.
    Unflagged,
    /// Denied by the operator, or not among the stated requests of the tool.
    #[default]
    Withheld,
}

impl Rights {
    /// Grants the services that `tool` requests and `allowed` allows, and records stated requests that are denied. If
    /// `by_naming` is `true`, a rich tool is allowed the requests of its source.
    pub(super) fn new(tool: &Tool, by_naming: bool, allowed: &Allowed, denied: &mut Vec<Denial>) -> Self {
        let asks = &tool.requested;
        let mut either = |name: &str, asked: bool, allowed: bool, is_denied: bool| {
            let right = match (asked || !asks.stated) && !is_denied {
                true if allowed => Right::Granted,
                true => Right::Unflagged,
                false => Right::Withheld,
            };
            if asked && asks.stated {
                denied.extend(right.or_denied(name).err());
            }
            right
        };
        let named = |asked: &[Glob]| if asks.stated { asked.to_vec() } else { "*".parse().into_iter().collect() };
        // A script stores values for the run without a request, and has no other store.
        let cache = asks.cache || !asks.stated;
        let imports_store = |imports: &[Import]| imports.iter().any(|import| import.from.starts_with(STORE_PREFIX));
        let keeps = cache && tool.body.program().is_some() && tool.imports.as_deref().is_none_or(imports_store);
        match tool.body {
            Body::Script(_) => {
                let delegate = either("delegate", asks.delegate, allowed.delegate, allowed.denies_delegate);
                let meta = either("meta", asks.meta, allowed.meta, allowed.denies_meta);
                let (asked, allows, denies) = (named(&asks.exec), allowed.exec.clone(), allowed.denied_exec.clone());
                let exec = Names { asked, allowed: allows, denied: denies };
                denied.extend(asks.exec.iter().filter_map(|name| exec.may("exec", name.as_str()).err()));
                Self { exec, delegate, meta, ..Self::default() }
            }
            Body::Rich(_) | Body::Typed(_) => {
                let by_name = by_naming && asks.stated;
                let model = either("model", asks.model, allowed.model || by_name, allowed.denies_model);
                let allows = if by_name && !asks.tools.iter().any(Glob::is_everything) {
                    asks.tools.iter().chain(&allowed.call).cloned().collect()
                } else {
                    allowed.call.clone()
                };
                let call = Names { asked: named(&asks.tools), allowed: allows, denied: allowed.denied_call.clone() };
                let everything = |name: &&Glob| !name.is_everything();
                denied.extend(
                    asks.tools.iter().filter(everything).filter_map(|name| call.may("call", name.as_str()).err()),
                );
                Self { model, call, cache, keeps, ..Self::default() }
            }
            _ => Self { cache, keeps, ..Self::default() },
        }
    }

    /// Checks that a program of this name may be run.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would have allowed it.
    pub(crate) fn program(&self, name: &str) -> Result<(), Denial> {
        self.exec.may("exec", name)
    }

    /// Checks that a tool of this name may be called.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would have allowed it.
    pub(crate) fn call(&self, name: &str) -> Result<(), Denial> {
        self.call.may("call", name)
    }

    /// Checks that the model may be called.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would have allowed it.
    pub(crate) fn model(&self) -> Result<(), Denial> {
        self.model.or_denied("model")
    }

    /// Checks that values may be stored.
    ///
    /// # Errors
    ///
    /// The denial, without a flag, because only the request of the tool is missing.
    pub(crate) fn cache(&self) -> Result<(), Denial> {
        if self.cache { Ok(()) } else { Err(Denial { capability: "cache".to_owned(), flag: None }) }
    }

    /// Returns `true` if its calls may leave values for later calls.
    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Checks that tasks may be delegated.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would have allowed it.
    pub(crate) fn delegate(&self) -> Result<(), Denial> {
        self.delegate.or_denied("delegate")
    }

    /// Checks that tools and hooks may be registered.
    ///
    /// # Errors
    ///
    /// The denial, with the flag that would have allowed it.
    pub(crate) fn meta(&self) -> Result<(), Denial> {
        self.meta.or_denied("meta")
    }

    /// Lists the granted services, as in a receipt.
    pub(super) fn granted(&self) -> impl Iterator<Item = String> {
        let words = [("delegate", self.delegate), ("meta", self.meta), ("model", self.model)];
        let words = words.into_iter().filter(|(_, right)| *right == Right::Granted).map(|(word, _)| word.to_owned());
        self.exec.granted("exec").chain(self.call.granted("call")).chain(words)
    }

    /// Returns `true` if a granted service can have effects beyond those of the tool itself.
    pub(super) fn reaches_beyond(&self) -> bool {
        [self.delegate, self.meta, self.model].contains(&Right::Granted)
            || (!self.call.asked.is_empty() && !self.call.allowed.is_empty())
    }
}

impl Names {
    fn may(&self, what: &str, name: &str) -> Result<(), Denial> {
        let is_in = |globs: &[Glob]| globs.iter().any(|glob| glob.is_match(name));
        let (asked, denied) = (is_in(&self.asked), is_in(&self.denied));
        if asked && !denied && is_in(&self.allowed) {
            return Ok(());
        }
        let flag = if asked && !denied { pasted(&format!("--allow-{what}"), name) } else { None };
        Err(Denial { capability: format!("{what}:{name}"), flag })
    }

    /// Lists the names that are both requested and allowed.
    fn granted<'a>(&'a self, what: &'a str) -> impl Iterator<Item = String> + 'a {
        self.asked.iter().flat_map(move |asked| {
            let both = self.allowed.iter().filter_map(move |allowed| match (asked.is_everything(), allowed) {
                (true, allowed) => Some(allowed.as_str()),
                (false, allowed) if allowed.is_match(asked.as_str()) => Some(asked.as_str()),
                (false, allowed) if asked.is_match(allowed.as_str()) => Some(allowed.as_str()),
                _ => None,
            });
            both.map(move |name| format!("{what}:{name}"))
        })
    }
}

impl Right {
    fn or_denied(self, name: &str) -> Result<(), Denial> {
        let flag = match self {
            Self::Granted => return Ok(()),
            Self::Unflagged => Some(format!("--allow-{name}")),
            Self::Withheld => None,
        };
        Err(Denial { capability: name.to_owned(), flag })
    }
}
