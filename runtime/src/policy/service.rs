//! What a tool may ask of the crib while it runs: a script to run programs, to hand tasks over, to add tools and hooks; a
//! rich tool to call other tools, to ask the model; every program to keep values.

use crate::call::{Denial, pasted};
use crate::tool::{Body, Glob, Import, Tool};

use super::resolved::Allowed;

/// What the names of the imports begin with by which a program keeps values.
const STORE: &str = "wasi:keyvalue/";

/// The services that a tool is granted. Only scripts and rich tools have a way to ask for more than a
/// store of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    exec: Names,
    delegate: Right,
    meta: Right,
    call: Names,
    model: Right,
    cache: bool,
    /// Whether what it keeps may outlast its call, by a store that its program imports.
    keeps: bool,
}

/// Things by their names, as far as they are asked for and allowed.
#[derive(Debug, Clone, Default)]
struct Names {
    asked: Vec<Glob>,
    allowed: Vec<Glob>,
    denied: Vec<Glob>,
}

/// Whether a tool may do something that has no more to it than that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Right {
    Granted,
    /// Nothing but the flag is missing.
    Unflagged,
    /// The operator denies it, or the tool states what it asks for and does not ask for this.
    #[default]
    Withheld,
}

impl Rights {
    /// What `tool` asks for and `allowed` allows; what it states and does not get is noted. `by_naming` says whether a rich
    /// tool is allowed what its source names.
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
        // A script keeps values for the run without asking, and has no other store.
        let cache = asks.cache || !asks.stated;
        let imports_store = |imports: &[Import]| imports.iter().any(|import| import.from.starts_with(STORE));
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

    /// Whether a program of this name may be run.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn program(&self, name: &str) -> Result<(), Denial> {
        self.exec.may("exec", name)
    }

    /// Whether a tool of this name may be called.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn call(&self, name: &str) -> Result<(), Denial> {
        self.call.may("call", name)
    }

    /// Whether the model may be asked.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn model(&self) -> Result<(), Denial> {
        self.model.or_denied("model")
    }

    /// Whether values may be kept.
    ///
    /// # Errors
    ///
    /// What was denied: nothing but the tool's own word is missing.
    pub(crate) fn cache(&self) -> Result<(), Denial> {
        if self.cache { Ok(()) } else { Err(Denial { capability: "cache".to_owned(), flag: None }) }
    }

    /// Whether its calls may leave values for one another.
    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Whether a task may be handed on.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn delegate(&self) -> Result<(), Denial> {
        self.delegate.or_denied("delegate")
    }

    /// Whether something may be added to the run.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn meta(&self) -> Result<(), Denial> {
        self.meta.or_denied("meta")
    }

    /// In words, as they stand in a receipt.
    pub(super) fn granted(&self) -> impl Iterator<Item = String> {
        let words = [("delegate", self.delegate), ("meta", self.meta), ("model", self.model)];
        let words = words.into_iter().filter(|(_, right)| *right == Right::Granted).map(|(word, _)| word.to_owned());
        self.exec.granted("exec").chain(self.call.granted("call")).chain(words)
    }

    /// Whether with it something else can be done than the tool itself may do.
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

    /// What is both asked for and allowed, in words.
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
