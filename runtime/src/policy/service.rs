//! What a script may ask of the crib: to run which programs, to hand tasks over, to add tools and hooks.

use crate::call::{Denial, pasted};
use crate::tool::{Body, Glob, Tool};

use super::resolved::Allowed;

/// The services that a tool is granted. Only a script has a way to ask for any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    asked: Vec<Glob>,
    allowed: Vec<Glob>,
    denied: Vec<Glob>,
    delegate: Right,
    meta: Right,
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
    /// What `tool` asks for and `allowed` allows; what it states and does not get is noted.
    pub(super) fn new(tool: &Tool, allowed: &Allowed, denied: &mut Vec<Denial>) -> Self {
        let Body::Script(_) = tool.body else { return Self::default() };
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
        let services = Self {
            delegate: either("delegate", asks.delegate, allowed.delegate, allowed.denies_delegate),
            meta: either("meta", asks.meta, allowed.meta, allowed.denies_meta),
            asked: if asks.stated { asks.exec.clone() } else { "*".parse().into_iter().collect() },
            allowed: allowed.exec.clone(),
            denied: allowed.denied_exec.clone(),
        };
        denied.extend(asks.exec.iter().filter_map(|name| services.program(name.as_str()).err()));
        services
    }

    /// Whether a program of this name may be run.
    ///
    /// # Errors
    ///
    /// What was denied, with the flag that would have allowed it.
    pub(crate) fn program(&self, name: &str) -> Result<(), Denial> {
        let is_in = |globs: &[Glob]| globs.iter().any(|glob| glob.is_match(name));
        let (asked, denied) = (is_in(&self.asked), is_in(&self.denied));
        if asked && !denied && is_in(&self.allowed) {
            return Ok(());
        }
        let flag = if asked && !denied { pasted("--allow-exec", name) } else { None };
        Err(Denial { capability: format!("exec:{name}"), flag })
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
        let exec = self.asked.iter().flat_map(|asked| {
            let both = self.allowed.iter().filter_map(move |allowed| match (asked.is_everything(), allowed) {
                (true, allowed) => Some(allowed.as_str()),
                (false, allowed) if allowed.is_match(asked.as_str()) => Some(asked.as_str()),
                (false, allowed) if asked.is_match(allowed.as_str()) => Some(allowed.as_str()),
                _ => None,
            });
            both.map(|name| format!("exec:{name}"))
        });
        let words = [("delegate", self.delegate), ("meta", self.meta)];
        exec.chain(words.into_iter().filter(|(_, right)| *right == Right::Granted).map(|(word, _)| word.to_owned()))
    }

    /// Whether with it something else can be done than the tool itself may do.
    pub(super) fn reaches_beyond(&self) -> bool {
        [self.delegate, self.meta].contains(&Right::Granted)
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
